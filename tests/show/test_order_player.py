"""The order player shows its static twin for each visit, says why an order repeats, and unfolds the prompts."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from matplotlib.text import Text

from memlab import connect, show
from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.experiments.background import run_sync
from memlab.experiments.orders.strategies import STRATEGIES
from memlab.experiments.orders.visits import Customer, Visit, steps_of, walk
from memlab.experiments.regulars import load_chats, load_regulars
from memlab.experiments.takeout import LANGUAGES, open_kitchen
from memlab.messages import Text as Content
from memlab.show.order_widget import prompt_html
from memlab.show.style import png
from memlab.trace import Trace

LAB = connect("offline")
NAMES = ("vector, top 3", "order log + tastes")


def replayed(strategy: str, user: str = "Alice", language: str = "zh", visits: int = 5) -> list[Visit]:
    """As `replay`, with one exchange between the visits, and only those exchanges embedded."""
    kitchen, regular = open_kitchen(language, "large"), {each.id: each for each in load_regulars()}[user]
    customer = Customer(user, regular.first_request(language), kitchen.texts["request"])
    steps = steps_of(customer, [[chat] for chat in load_chats(language)[:visits]])
    going = walk(steps, STRATEGIES[strategy], kitchen, LAB.chat, LAB.embedder, LAB.embedder.dimensions, lambda n: 0)

    async def all_visits() -> list[Visit]:
        return [visit async for visit in going]

    return run_sync(all_visits())


@pytest.fixture(scope="module")
def runs() -> dict[str, list[Visit]]:
    return {name: replayed(name) for name in NAMES}


def words(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_both_panels_show_request_records_orders_and_marks(runs: dict[str, list[Visit]]) -> None:
    left, right = show.order_figure(runs, 4).figure.axes
    vector, logged = (visits[3] for visits in runs.values())
    assert "Visit 4, Alice: “帮我点一份外卖”" in words(left)
    assert words(left).count("old request") == 2
    assert {"✗ last order", "✓ constraint", "REPEAT", "why: stored but not retrieved"} <= set(words(left))
    assert vector.kitchen.named(vector.order) in words(left)
    assert {"✓ last order", "✓ constraint", "NEW", "orders: newest, top 5, kept 3 of 3"} <= set(words(right))
    assert logged.kitchen.named(logged.order) in words(right)
    assert not any(word.startswith("why") for word in words(right))


def test_the_strip_marks_repeats_by_fill_and_the_visit_by_a_black_edge(runs: dict[str, list[Visit]]) -> None:
    ax = show.order_figure(runs, 5)
    squares = ax.patches[:5]
    filled = [square.get_facecolor()[:3] != (1, 1, 1) for square in squares]
    assert filled == [bool(v.previous) and v.dishes == v.previous[0] for v in runs[NAMES[0]]]
    assert [square.get_edgecolor()[:3] == (0, 0, 0) for square in squares] == [False] * 4 + [True]


def test_the_alt_text_says_what_was_retrieved_seen_and_ordered(runs: dict[str, list[Visit]]) -> None:
    text = show.describe(show.order_figure(runs, 4))
    visit = runs[NAMES[0]][3]
    score = visit.searches[0].scores[visit.searches[0].kept[2]]
    assert "“vector, top 3”, visit 4 of 5: Alice asks “帮我点一份外卖”." in text
    assert f"Retrieved: old request 1.00, old request 1.00, first request {score:.2f}." in text
    assert "In the prompt: last order no, constraint yes." in text
    assert f"Ordered: {visit.kitchen.named(visit.order)}: REPEAT. Why: stored but not retrieved: rank " in text
    assert "kept: 2 × old request, 1 × first request." in text
    assert "“order log + tastes”, visit 4 of 5" in text
    assert "In the prompt: last order yes, constraint yes." in text
    assert "Visits that repeat: none." in text


def test_the_first_visit_has_no_last_order(runs: dict[str, list[Visit]]) -> None:
    ax = show.order_figure({NAMES[0]: runs[NAMES[0]]})
    assert {"– last order", "none yet", "FIRST ORDER"} <= set(words(ax))
    assert "chat_history_memory: cosine, top 3, nothing to search yet" in words(ax)
    assert "In the prompt: last order none, constraint yes." in show.describe(ax)
    assert len(ax.figure.axes) == 1


def test_an_order_that_breaks_the_constraint_of_a_regular_says_which_dish(runs: dict[str, list[Visit]]) -> None:
    visit = runs[NAMES[0]][2]
    spicy = next(dish for dish in visit.kitchen.dishes if dish.spicy)
    broken = [replace(visit, order={spicy.id: 2})]
    assert f"BREAKS CONSTRAINT: {spicy.name}" in words(show.order_figure({"x": broken}, 3))
    stranger = [replace(broken[0], customer=Customer("Zoe", "one dish", "one dish"))]
    ax = show.order_figure({"x": stranger}, 3)
    assert not any(word.startswith("BREAKS") for word in words(ax))
    assert "– constraint" in words(ax)


def test_history_and_failures_are_told(runs: dict[str, list[Visit]]) -> None:
    history = show.order_figure({"full history": replayed("full history", visits=2)}, 2)
    # The request, two calls of tools with their results, the answer, and a chat of two.
    assert {"No memory is searched.", "Messages of the history in the prompt: 8"} <= set(words(history))
    failed = replace(runs[NAMES[0]][1], response=None, trace=Trace(), error="RateLimitError: try later", order={})
    ax = show.order_figure({"x": [failed]}, 2)
    assert {"NO ORDER", "nothing (the run failed: RateLimitError)"} <= set(words(ax))
    assert "the run failed with RateLimitError: try later" in prompt_html(failed)


# Many records of two searches, long Russian names, a constraint late in a long request.
CASES = [("vector, top 20", "Jack"), ("order log + tastes", "Kate"), ("turn as one record", "Emma"), ("MMR", "Nick")]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("strategy", "user"), CASES)
@pytest.mark.filterwarnings("error:Glyph")
def test_no_text_is_cut_off_or_lies_on_another(strategy: str, user: str, language: str) -> None:
    visits = replayed(strategy, user, language, 4)
    for number in (1, 4):
        ax = show.order_figure({strategy: visits, "the same": visits}, number)
        png(ax)
        boxes = [(text.get_text(), Text.get_window_extent(text)) for each in ax.figure.axes for text in each.texts]
        width, height = ax.figure.bbox.size
        for text, box in boxes:
            assert min(box.x0, box.y0, width - box.x1, height - box.y1) >= 0, text
        for (one, box), (other, second) in combinations(boxes, 2):
            assert not box.padded(-1.5).overlaps(second.padded(-1.5)), (one, other)
        assert min(text.get_fontsize() for each in ax.figure.axes for text in each.texts) >= 14


def test_a_cut_first_request_shows_the_constraint_that_it_holds() -> None:
    ax = show.order_figure({"x": replayed("vector, top 3", "Alice", "en", 3)}, 3)
    assert any(word.startswith("… I can't eat spicy food.") for word in words(ax))


def test_more_records_than_lines_are_counted() -> None:
    ax = show.order_figure({"x": replayed("vector, top 20", "Alice", "zh", 5)}, 5)
    (more,) = [word for word in words(ax) if word.startswith("… and")]
    assert more.startswith("… and 8 more: ")
    assert "and 8 more" in show.describe(ax)


# --- the widget ---


def test_the_player_shows_its_static_twin_and_follows_slider_and_play(runs: dict[str, list[Visit]]) -> None:
    player = show.order_player(runs)
    assert player.picture.value == png(show.order_figure(runs, 1))
    player.controls["visit"].value = 4
    assert player.picture.value == png(show.order_figure(runs, 4))
    assert player.play.value == 4
    player.play.value = 5
    assert player.controls["visit"].value == 5
    assert "visit 5 of 5" in player.caption.value
    assert (player.play.min, player.play.max) == (1, 5)
    assert show.order_player(runs, 3).controls["visit"].value == 3


def test_the_whole_prompt_unfolds_below_and_is_escaped(runs: dict[str, list[Visit]]) -> None:
    player = show.order_player(runs, 4)
    assert player.prompts in player.children
    assert player.prompts.selected_index is None
    visit = runs[NAMES[0]][3]
    assert player.prompts.titles[0] == f"The prompt of visit 4 under “vector, top 3”, {len(visit.prompt)} messages"
    shown = player.prompts.children[0].value
    assert "<b>system (instructions)</b>" in shown
    assert "<b>user (memories)</b>" in shown
    assert "我不能吃辣" in shown
    assert "GetMenu({})" in shown
    assert "&quot;name&quot;" in shown
    player.controls["visit"].value = 5
    assert "visit 5" in player.prompts.titles[0]
    assert player.prompts.children[0].value == prompt_html(runs[NAMES[0]][4])


def test_markup_in_a_message_stays_text(runs: dict[str, list[Visit]], monkeypatch: pytest.MonkeyPatch) -> None:
    visit = runs[NAMES[0]][3]
    monkeypatch.setattr(visit.prompt[1], "contents", [Content("<script>alert(1)</script>")])
    assert "<script" not in prompt_html(visit)
    assert "&lt;script&gt;" in prompt_html(visit)


def test_visits_that_only_one_strategy_has_are_left_out(runs: dict[str, list[Visit]]) -> None:
    player = show.order_player({"a": runs[NAMES[0]], "b": runs[NAMES[1]][1:3]})
    assert (player.controls["visit"].min, player.controls["visit"].max) == (2, 3)


BAD: dict[str, tuple[Callable[[dict[str, list[Visit]]], object], type[Exception], str]] = {
    "list": (lambda runs: show.order_figure([*runs.values()]), InvalidTypeError, "runs is a list; pass {name"),
    "none": (lambda runs: show.order_player({}), InvalidInputError, "runs holds 0 strategies"),
    "three": (lambda runs: show.order_player(runs | {"x": runs[NAMES[0]]}), InvalidInputError, "holds 3 strategies"),
    "no visits": (lambda runs: show.order_figure({"x": []}), InvalidInputError, "x has no visits"),
    "unknown": (lambda runs: show.order_figure(runs, 9), InvalidInputError, "has no visit 9; it has 1, 2, 3, 4, 5"),
    "start": (lambda runs: show.order_player(runs, 0), InvalidInputError, "has no visit 0"),
    "apart": (
        lambda runs: show.order_player({"a": runs[NAMES[0]][:2], "b": runs[NAMES[1]][2:]}),
        InvalidInputError,
        "a and b have no visit number in common",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_can_not_be_played_is_refused(name: str, runs: dict[str, list[Visit]]) -> None:
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call(runs)
