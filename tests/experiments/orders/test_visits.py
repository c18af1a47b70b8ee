"""Visits: what counts as an order, what is stored between them, and what a run that fails leaves behind."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

import memlab
from memlab import AgentRunError, Message
from memlab.experiments.background import run_sync
from memlab.experiments.orders.clock import SimulatedClock
from memlab.experiments.orders.embedding import RememberingEmbedder
from memlab.experiments.orders.measures import row_of
from memlab.experiments.orders.reading import visible_orders
from memlab.experiments.orders.reasons import Reason, explain
from memlab.experiments.orders.strategies import STRATEGIES
from memlab.experiments.orders.visits import Customer, Visit, steps_of, walk
from memlab.experiments.regulars import load_regulars
from memlab.experiments.takeout import open_kitchen
from memlab.response import ChatClient, ChatReply
from memlab.tools import FunctionTool

CHAT = ("Will it rain tomorrow?", "A little, in the morning.")


class Failing:
    """A client that fails in the given visits, once the order was placed."""

    def __init__(self, client: ChatClient, visits: set[int]) -> None:
        self.client, self.visits, self.visit = client, visits, 0

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[FunctionTool], options: Mapping[str, Any], *, stream: bool
    ) -> AsyncIterator[str | ChatReply]:
        self.visit += messages[-1].role != "tool"
        if self.visit in self.visits and any(
            call.name == "PlaceOrder" for message in messages for call in message.tool_calls
        ):
            raise ConnectionError("the line went dead")
        async for part in self.client.complete(messages, tools, options, stream=stream):
            yield part


class Broken:
    """A client with a bug."""

    async def complete(self, *args: Any, **options: Any) -> AsyncIterator[str | ChatReply]:
        yield "a" + 1  # type: ignore[operator]


async def collect(client: ChatClient) -> list[Visit]:
    lab, kitchen = memlab.connect("offline"), open_kitchen("en", "large")
    steps = steps_of(Customer("Alice", "Order me a take-away", "Order me a take-away"), [[]])
    going = walk(steps, STRATEGIES["no memory"], kitchen, client, lab.embedder, lab.embedder.dimensions)
    return [visit async for visit in going]


def visits(
    strategy: str, count: int = 4, failing: set[int] | None = None, menu: str = "large", chats: int = 1
) -> list[Visit]:
    lab, kitchen = memlab.connect("offline"), open_kitchen("en", menu)
    alice = Customer("Alice", load_regulars(1)[0].first_request("en"), kitchen.texts["request"])
    client, embedder = Failing(lab.chat, failing or set()), RememberingEmbedder(lab.embedder)

    async def all_visits() -> list[Visit]:
        steps = steps_of(alice, [[CHAT] * chats] * count)
        dimensions = lab.embedder.dimensions
        going = walk(steps, STRATEGIES[strategy], kitchen, client, embedder, dimensions)
        return [visit async for visit in going]

    return run_sync(all_visits())


def test_an_order_counts_though_the_run_failed_after_it() -> None:
    second, third = visits("order log", failing={2})[1:3]
    assert second.error == "AgentRunError: the line went dead"
    assert second.dishes
    assert third.previous[0] == second.dishes
    row = row_of(second, load_regulars(1)[0], "en")
    assert (row["order"], row["failed"]) == ("+".join(sorted(second.dishes)), second.error)


def test_what_the_model_saw_is_known_though_the_run_failed_after_the_order() -> None:
    alice = load_regulars(1)[0]
    row = row_of(visits("order log + tastes", failing={3})[2], alice, "en")
    assert (row["latest_visible"], row["constraint_visible"], row["repeat"]) == (True, True, False)
    assert row["prompt_tokens"] > 0
    assert row["model_calls"] == 3


def test_a_failure_that_no_visit_would_mend_is_raised() -> None:
    with pytest.raises(AgentRunError, match="a later model call failed with ConnectionError"):
        visits("order log", failing={2, 3, 4})
    with pytest.raises(TypeError):
        run_sync(collect(Broken()))


def test_the_order_log_knows_the_order_of_a_run_that_failed_and_the_vector_memory_does_not() -> None:
    third = visits("order log", failing={2})[2]
    assert third.previous[0] in visible_orders(third)
    third = visits("vector, top 20", failing={2})[2]
    assert third.previous[0] not in visible_orders(third)
    assert not any(set(third.previous[0]) <= set(dishes) for dishes in visible_orders(third))


def test_chats_are_stored_without_a_model_call() -> None:
    for strategy in ("vector, top 20", "turn as one record"):
        last = visits(strategy)[-1]
        assert sum("rain" in record.text for record in last.stored) == 3
    last = visits("full history")[-1]
    assert sum(message.text == CHAT[0] for message in last.prompt) == 3
    assert sum(message.text == CHAT[1] for message in last.prompt) == 3


def test_requests_are_stored_once_where_texts_are_deduplicated() -> None:
    kept = visits("deduplicated")[-1].stored
    assert len(kept) == len({(record.role, record.text) for record in kept})
    assert sum(record.text == CHAT[0] for record in kept) == 1
    plain = visits("vector, top 3")[-1].stored
    assert sum(record.text == CHAT[0] for record in plain) == 3


def test_each_visit_is_a_day_later() -> None:
    days = [{record.created_at.date() for record in visit.stored} for visit in visits("vector, top 3")]
    assert [len(each) for each in days] == [0, 1, 2, 3]


def test_a_clock_that_moves_only_when_told_to() -> None:
    clock = SimulatedClock()
    before = clock()
    assert clock() == before
    clock.forward(hours=25)
    assert (clock() - before).total_seconds() == 25 * 3600


def test_the_prompt_is_the_one_that_the_order_was_chosen_from() -> None:
    for visit in visits("vector, top 3", 2):
        called = [call.name for message in visit.prompt for call in message.tool_calls]
        assert called == ["GetMenu"]


@pytest.mark.parametrize(
    ("strategy", "menu", "count", "reason", "detail"),
    [
        ("no memory", "large", 4, Reason.NEVER_STORED, "no memory holds"),
        ("vector, top 3", "large", 12, Reason.NOT_RETRIEVED, "beyond top 3; kept: "),
        ("vector, threshold 0.3", "large", 4, Reason.NOT_RETRIEVED, "below the threshold 0.3"),
        ("last 6 messages", "large", 4, Reason.NOT_RETRIEVED, "the reducer dropped it"),
        ("vector, top 20", "small", 12, Reason.IGNORED, "was in the prompt"),
    ],
)
def test_each_repeat_has_its_reason(strategy: str, menu: str, count: int, reason: Reason, detail: str) -> None:
    walked = visits(strategy, count, menu=menu, chats=3 if strategy.startswith("last") else 1)
    explained = [explain(visit) for visit in walked]
    assert [each is not None for each in explained] == [
        bool(visit.previous) and visit.dishes == visit.previous[0] for visit in walked
    ]
    matching = [each for each in explained if each and each.reason == reason and detail in each.detail]
    assert matching, [each and each.detail for each in explained]


def test_what_crowded_the_order_out_is_named_with_its_score() -> None:
    walked = visits("vector, top 3", 12)
    missed = [(visit, found) for visit in walked if (found := explain(visit)) and found.rank]
    assert missed
    for visit, found in missed:
        assert found.reason == Reason.NOT_RETRIEVED
        assert found.rank is not None
        assert found.score is not None
        assert found.lowest_kept is not None
        assert found.rank > 3
        assert found.score <= found.lowest_kept + 1e-6
        assert sum(found.crowded_by.values()) == 3 == len(visit.retrieved)
    assert "request" in missed[-1][1].crowded_by
