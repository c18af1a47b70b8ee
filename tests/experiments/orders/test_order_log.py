"""The order log: this user's orders alone, the newest first, and no more than it may hold."""

import re
from collections.abc import Sequence

import pytest

import memlab
from memlab.experiments.background import run_sync
from memlab.experiments.orders.embedding import RememberingEmbedder
from memlab.experiments.orders.reading import dishes_in
from memlab.experiments.orders.strategies import NEWEST_ORDERS, STRATEGIES
from memlab.experiments.orders.visits import Customer, Step, Visit, walk
from memlab.experiments.takeout import open_kitchen

WITH_A_LOG = ["order log", "order log + tastes"]


def visits(strategy: str, users: Sequence[str], language: str = "en") -> list[Visit]:
    """Visits of several users to one agent with one store, in turn."""
    kitchen, lab = open_kitchen(language, "large"), memlab.connect("offline")
    request = kitchen.texts["request"]
    steps = [Step(Customer(user, request, request), request) for user in users]
    embedder = RememberingEmbedder(lab.embedder)

    async def all_visits() -> list[Visit]:
        going = walk(steps, STRATEGIES[strategy], kitchen, lab.chat, embedder, lab.embedder.dimensions)
        return [visit async for visit in going]

    return run_sync(all_visits())


def logged(visit: Visit) -> list[tuple[str, frozenset[str]]]:
    """(date, dishes) of each line of the log in the prompt, in its order."""
    heading = visit.kitchen.texts["order_log_prompt"]
    texts = [message.text for message in visit.prompt]
    texts += [result.result for message in visit.prompt for result in message.tool_results]
    blocks = [text for text in texts if heading in text]
    lines = [re.match(r"(\d{4}-\d\d-\d\d): (.*)", line) for block in blocks for line in block.splitlines()]
    return [(found[1], dishes_in(found[2], visit.kitchen)) for found in lines if found]


@pytest.fixture(scope="module", params=[*WITH_A_LOG, "last-orders tool"])
def in_turn(request: pytest.FixtureRequest) -> list[Visit]:
    return visits(request.param, ["Ann", "Ben"] * (NEWEST_ORDERS + 2))


def test_the_order_log_holds_this_user_s_orders_alone(in_turn: list[Visit]) -> None:
    for visit in in_turn:
        assert {dishes for _, dishes in logged(visit)} <= set(visit.previous)
        assert bool(logged(visit)) == bool(visit.previous)


def test_the_order_log_lists_the_newest_first(in_turn: list[Visit]) -> None:
    for visit in in_turn:
        dates = [date for date, _ in logged(visit)]
        assert dates == sorted(dates, reverse=True)
        assert [dishes for _, dishes in logged(visit)] == list(visit.previous[: len(dates)])


def test_the_order_log_holds_no_more_than_the_newest_few(in_turn: list[Visit]) -> None:
    lengths = [len(logged(visit)) for visit in in_turn]
    assert lengths == [min(len(visit.previous), NEWEST_ORDERS) for visit in in_turn]
    assert max(lengths) == NEWEST_ORDERS < max(len(visit.previous) for visit in in_turn)


def test_no_order_repeats_one_that_the_log_shows(in_turn: list[Visit]) -> None:
    for visit in in_turn:
        assert visit.dishes
        assert visit.dishes not in visit.previous[:NEWEST_ORDERS]


def test_the_log_holds_orders_and_no_messages() -> None:
    for visit in visits("order log", ["Ann"] * 3):
        assert all(record.kind == "order" for search in visit.searches for record in search.candidates)


def test_the_model_calls_the_last_orders_tool_and_nothing_is_injected() -> None:
    for visit in visits("last-orders tool", ["Ann"] * 3):
        assert [run.name for run in visit.trace.tool_runs][:2] == ["GetLastOrders", "GetMenu"]
        assert not [message for message in visit.trace.sent if message.source.kind == "provider"]
