"""The style: a font for every script, no figure left behind, alt text that travels with the picture."""

import subprocess
import sys
import warnings

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib import font_manager

from memlab.show import style


def glyph_warnings(text: str) -> list[str]:
    ax = style.new_axes(None)
    ax.set_title(text)
    ax.text(0.5, 0.5, text, weight="bold")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        style.png(ax)
    return [str(warning.message) for warning in caught if "Glyph" in str(warning.message)]


def test_chinese_english_and_russian_render_with_every_glyph() -> None:
    assert (
        glyph_warnings("我对花生过敏，请记住：辣椒炒肉、剁椒鱼头！ I can't eat nuts. Я не ем острое, ёж. ✓ ✗ → ■") == []
    )


def test_the_glyph_check_can_fail() -> None:
    assert glyph_warnings("\U00013000") != []  # an Egyptian hieroglyph is in neither font


def test_the_font_file_itself_serves_chinese() -> None:
    style.use_style()
    found = font_manager.findfont(font_manager.FontProperties(family=["Noto Sans SC"]), fallback_to_default=False)
    assert found.endswith("NotoSansSC-GB2312.otf")


def test_use_style_is_idempotent_and_keeps_a_later_change_until_called_again() -> None:
    style.use_style()
    fonts = len(font_manager.fontManager.ttflist)
    matplotlib.rcParams["font.size"] = 9
    style.new_axes(None)
    assert matplotlib.rcParams["font.size"] == 9
    style.use_style()
    assert matplotlib.rcParams["font.size"] == style.RC["font.size"] >= 14
    assert len(font_manager.fontManager.ttflist) == fonts


def test_importing_the_package_loads_neither_matplotlib_nor_widgets() -> None:
    code = (
        "import sys, memlab.show, memlab.show.style; print({'matplotlib', 'ipywidgets', 'pandas'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_every_public_name_loads_and_an_unknown_one_says_what_there_is() -> None:
    import memlab.show

    assert all(callable(getattr(memlab.show, name)) for name in memlab.show.__all__)
    with pytest.raises(AttributeError, match="plot_token_cost"):
        _ = memlab.show.plot_nothing


def test_text_with_dollar_signs_is_no_formula() -> None:
    ax = style.new_axes(None)
    ax.set_title(r"from $5 to $6 and \frac")
    assert style.png(ax).startswith(b"\x89PNG")


def test_one_figure_gives_the_same_bytes_twice() -> None:
    ax = style.new_axes(None)
    assert style.png(ax) == style.png(ax)


def test_a_picture_carries_its_alt_text_and_a_pyplot_figure_is_shown_once() -> None:
    ax = plt.subplots()[1]
    style.set_alt(ax, "Tokens grow.")
    data, metadata = style.mime_bundle(ax)
    assert metadata == {"image/png": {"alt": "Tokens grow."}}
    assert data["text/plain"] == "Tokens grow."
    assert plt.get_fignums() == []


def test_a_strategy_keeps_its_colour_and_no_two_share_one() -> None:
    alone = style.strategy_colours(["vector memory"])
    colours = style.strategy_colours(["full history", "last 20 messages", "token budget", "vector memory", "vector 2"])
    assert colours["vector memory"] == alone["vector memory"]
    assert len(set(colours.values())) == len(colours)


def test_labels_at_one_height_are_moved_apart_inside_the_axes() -> None:
    ax = style.new_axes(None)
    style.label_ends(ax, dict.fromkeys(("a", "b", "c"), (1.0, style.BLUE)))
    heights = sorted(text.get_position()[1] for text in ax.texts)
    assert heights[-1] <= 1.0
    assert min(heights[1] - heights[0], heights[2] - heights[1]) > 0.04
