"""What counts as a visible order, also with a model that writes as it likes: a scripted one through the real client."""

import json
from typing import Any

import pytest

import memlab
from memlab import ToolCall
from memlab.experiments.background import run_sync
from memlab.experiments.orders.measures import row_of
from memlab.experiments.orders.reading import dishes_in, visible_orders
from memlab.experiments.orders.reasons import Reason, explain
from memlab.experiments.orders.strategies import STRATEGIES
from memlab.experiments.orders.visits import Customer, Visit, steps_of, walk
from memlab.experiments.regulars import load_chats, load_regulars
from memlab.experiments.takeout import LANGUAGES, Dish, open_kitchen
from tests.support import ScriptedEndpoint, call

RU = {dish.id: dish.name for dish in open_kitchen("ru", "large").dishes}


@pytest.mark.parametrize(
    ("language", "text", "dishes"),
    [
        ("en", "I chose STEAMED SEA BASS for you.", {"sea_bass"}),
        ("en", "Stir\u2011fried choy sum", {"choy_sum"}),
        ("en", "- Scrambled eggs\n  with tomato\n- Celery with lily\u00a0bulbs", {"egg_tomato", "celery_lily"}),
        ("ru", "Заказал вам сибаса на пару и сельдерей с луковицами лилии.", {"sea_bass", "celery_lily"}),
        ("ru", "Яичница с помидорами, жареного чой-сама", {"egg_tomato", "choy_sum"}),
        ("zh", "为您点了番茄\n炒蛋和西芹百合", {"egg_tomato", "celery_lily"}),
        ("zh", "今天想吃番茄", set()),
        ("en", "sea bass, steamed", set()),
    ],
)
def test_a_dish_is_found_in_any_case_and_form(language: str, text: str, dishes: set[str]) -> None:
    assert dishes_in(text, open_kitchen(language, "large")) >= dishes
    assert dishes_in(text, open_kitchen(language)) == dishes


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("menu", ["small", "large"])
def test_each_dish_is_found_alone_and_among_all(language: str, menu: str) -> None:
    kitchen = open_kitchen(language, menu)
    for dish in kitchen.dishes:
        assert dishes_in(f"{dish.name}×1", kitchen) == {dish.id}
    assert dishes_in(", ".join(dish.name for dish in kitchen.dishes), kitchen) == {dish.id for dish in kitchen.dishes}


def test_a_name_within_another_is_not_found_there() -> None:
    kitchen = open_kitchen("en")
    kitchen.dishes = (Dish("a", "veg", False, "Rice"), Dish("b", "meat", False, "Fried rice with pork"))
    assert dishes_in("fried rice with pork", kitchen) == {"b"}
    assert dishes_in("fried rice with pork, and rice", kitchen) == {"a", "b"}


MENU = call("GetMenu", "m")
EGGS, BASS, SUM, LILY = (
    "Scrambled eggs with tomato",
    "Steamed sea bass",
    "Stir-fried choy sum",
    "Celery with lily bulbs",
)


def place(*dishes: str, call_id: str = "p") -> ToolCall:
    return ToolCall(call_id, "PlaceOrder", json.dumps({"orderItems": dict.fromkeys(dishes, 1)}))


def scripted(strategy: str, *replies: Any, visits: int = 2) -> list[Visit]:
    """Visits of Alice to a model that gives these replies, one a request."""
    lab, kitchen, alice = memlab.connect("offline"), open_kitchen("en"), load_regulars(1)[0]
    customer = Customer(alice.id, alice.first_request("en"), kitchen.texts["request"])
    client, dimensions = ScriptedEndpoint(*replies).client, lab.embedder.dimensions

    async def all_visits() -> list[Visit]:
        steps = steps_of(customer, [[]] * visits)
        going = walk(steps, STRATEGIES[strategy], kitchen, client, lab.embedder, dimensions)
        return [visit async for visit in going]

    return run_sync(all_visits())


def row(visit: Visit) -> dict[str, Any]:
    return row_of(visit, load_regulars(1)[0], "en")


def test_an_order_in_two_calls_is_one_order() -> None:
    twice = [place(EGGS, call_id="a"), place(SUM, call_id="b")]
    for strategy in ("full history", "order log"):
        second = scripted(strategy, MENU, twice, "Done.", MENU, place(EGGS, SUM), "Done again.")[1]
        assert (row(second)["repeat"], row(second)["latest_visible"]) == (True, True)
        found = explain(second)
        assert found is not None
        assert found.reason == Reason.IGNORED


def test_what_a_tool_brings_after_the_choice_was_not_seen() -> None:
    log = ToolCall("l", "GetLastOrders", '{"userQuestion": "last orders"}')
    first = [MENU, place(EGGS, SUM), "Done."]
    second = scripted("last-orders tool", *first, [log, place(EGGS, SUM)], "Done.")[1]
    assert row(second)["latest_visible"] is False
    found = explain(second)
    assert found is not None
    assert found.reason == Reason.NOT_RETRIEVED
    assert "after the new one was chosen" in found.detail
    before = scripted("last-orders tool", *first, log, place(EGGS, SUM), "Done.")[1]
    assert row(before)["latest_visible"] is True


def test_a_menu_is_no_order() -> None:
    menu = ", ".join(dish.name for dish in open_kitchen("en").dishes)
    visits = scripted("full history", MENU, "We have " + menu, MENU, place(EGGS, SUM), "Done.")
    assert visits[1].previous == ()
    assert visible_orders(visits[1]) == []


def test_a_visit_without_an_order_has_no_measures_of_one() -> None:
    first = scripted("no memory", "Nothing today.")[0]
    found = row(first)
    assert (found["order"], found["portions"]) == ("", 0)
    assert all(found[name] is None for name in ("violation", "over_limit", "utility", "diversity", "repeat"))


def test_a_backslash_in_a_reply_is_a_backslash() -> None:
    visits = scripted(
        "full history", MENU, place(EGGS, SUM), r"Saved to C:\users\me.", MENU, place(BASS, LILY), "Done."
    )
    assert row(visits[1])["latest_visible"] is True


def test_a_reply_of_many_lines_is_an_order_where_it_is_retrieved() -> None:
    reply = f"Your order:\n\n- {EGGS} x 1\n- {SUM} x 1\n\nEnjoy!"
    second = scripted("vector, top 3", MENU, place(EGGS, SUM), reply, MENU, place(BASS, LILY), "Done.")[1]
    assert row(second)["latest_visible"] is True


def test_tokens_of_a_memory_s_tool_are_tokens_of_the_memory() -> None:
    log = ToolCall("l", "GetLastOrders", '{"userQuestion": "last orders"}')
    visits = scripted("last-orders tool", MENU, place(EGGS, SUM), "Done.", log, place(BASS, LILY), "Done.")
    assert row(visits[0])["memory_tokens"] == 0
    assert row(visits[1])["memory_tokens"] > 10


def test_more_than_three_portions_are_over_the_limit() -> None:
    four = ToolCall("p", "PlaceOrder", json.dumps({"orderItems": {EGGS: 3, SUM: 1}}))
    assert row(scripted("no memory", four, "Done.")[0])["over_limit"] is True


@pytest.mark.parametrize(
    ("language", "text", "dishes"),
    [
        ("en", "I chose Steamed sea bass (清蒸鲈鱼) and Stir-fried choy sum (清炒菜心).", {"sea_bass", "choy_sum"}),
        ("zh", "为您点了清蒸鲈鱼 (Steamed sea bass)", {"sea_bass"}),
        ("en", "I can't eat spinach or peanuts.", set()),
        ("en", "I had a broccoli. Garlic is off the list.", set()),
        ("en", "Chicken, shiitake, mushrooms: what can I cook?", set()),
        ("ru", "Шпинат. Арахис я не ем", set()),
        ("ru", "Сибас, пара слов о нём", set()),
    ],
)
def test_names_stand_in_any_script_and_within_a_phrase(language: str, text: str, dishes: set[str]) -> None:
    assert dishes_in(text, open_kitchen(language, "large")) == dishes


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_chat_and_no_constraint_names_a_dish(language: str) -> None:
    texts = [text for exchange in load_chats(language) for text in exchange]
    texts += [
        text for user in load_regulars() for text in (user.first_request(language), *user.constraint_texts(language))
    ]
    for menu in ("small", "large"):
        assert not [text for text in texts if dishes_in(text, open_kitchen(language, menu))]


def test_a_log_that_was_not_asked_is_stored_but_not_retrieved() -> None:
    visits = scripted("last-orders tool", MENU, place(EGGS, SUM), "Done.", MENU, place(EGGS, SUM), "Done.")
    assert row(visits[1])["why"] == Reason.NOT_RETRIEVED
