"""The order player in real JupyterLab: the keyboard, the play button, and the prompts that unfold."""

from collections.abc import Iterator

import pytest

# Skips, with its reason, where there is no browser.
from tests.support_browser import jupyterlab, keep_screenshot, run_all, sync_api

CELL = """\
from memlab.experiments.orders.runs import replay_run
from memlab.experiments.orders.strategies import STRATEGIES
from memlab.show import order_player

runs = {name: replay_run("B", strategy=STRATEGIES[name]) for name in ("vector, top 3", "order log + tastes")}
player = order_player(runs)
player
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the notebook."""
    with jupyterlab(tmp_path_factory.mktemp("lab"), CELL) as address:
        yield address


def test_the_player_follows_the_keyboard_plays_on_and_unfolds_the_prompts(lab: str) -> None:
    with run_all(lab, 1700, 1500) as page:
        expect, caption = sync_api.expect, page.locator("p[aria-live=polite]")
        picture = page.locator("img.widget-image")
        expect(caption).to_contain_text("“vector, top 3”, visit 1 of 5: Alice asks")
        before = picture.get_attribute("src")
        page.locator(".widget-hslider", has_text="Visit").locator(".noUi-handle").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        expect(caption).to_contain_text("visit 3 of 5")
        expect(picture).not_to_have_attribute("src", before or "")
        assert picture.evaluate("image => image.naturalWidth") > 1000

        page.locator(".widget-play button").first.click()
        expect(caption).to_contain_text("visit 5 of 5")

        prompts = page.locator(".jupyter-widget-Accordion-child, .jupyter-widgets.widget-accordion > *")
        expect(prompts.first).to_contain_text("The prompt of visit 5 under “vector, top 3”")
        assert page.get_by_text("system (instructions)").first.is_hidden()
        page.get_by_text("The prompt of visit 5 under “vector, top 3”").click()
        expect(page.get_by_text("system (instructions)").first).to_be_visible()
        keep_screenshot(page, "order_player.png")
