"""A memory that fails never loses the answer (SPEC 4, point 8)."""

import asyncio
import logging
import threading

import pytest

from memlab import (
    ChatHistoryMemoryProvider,
    InMemoryVectorStore,
    MemlabError,
    MemoryScope,
    SearchTime,
    State,
)
from tests.support import ScriptedEndpoint, call
from tests.support_memory import COLLECTION, BagEmbedder, FaultyStore, ask, memory, remembered, remembering, texts

SECRET = "alice cannot eat spicy food"


@pytest.fixture(params=[False, True], ids=["plain", "streamed"])
def run(request):
    """Runs an agent for Alice in a new session, plain and streamed."""

    async def run(agent, text="soup?"):
        if not request.param:
            return await ask(agent, text)
        session = agent.create_session()
        session.state["user_id"] = "alice"
        return await agent.run(text, session=session, stream=True).get_final_response()

    return run


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.DEBUG, logger="memlab")
    return caplog


def complaints(log):
    return [record for record in log.records if record.levelno >= logging.WARNING and record.name.startswith("memlab")]


@pytest.mark.parametrize("error", [RuntimeError(SECRET), MemlabError(SECRET), OSError(5, SECRET), TimeoutError()])
@pytest.mark.parametrize("what", ["search", "write"])
async def test_4_8_a_failing_store_keeps_the_answer_is_logged_once_and_is_in_the_trace(run, log, what, error):
    store = FaultyStore()
    setattr(store, f"fail_{what}", error)
    response = await run(remembering(memory(store), ScriptedEndpoint("yes").client))
    assert response.text.strip() == "yes"
    kind = type(error).__name__
    assert [(f.where, f.error) for f in response.trace.failures] == [(f"ChatHistoryMemoryProvider.{what}", kind)]
    (record,) = complaints(log)
    assert kind in record.getMessage()
    assert what in record.getMessage()
    assert record.exc_info is None
    assert "spicy" not in log.text
    assert "alice" not in log.text


async def test_4_8_a_failing_search_still_stores_and_a_failing_write_still_finds(run):
    store = FaultyStore()
    agent = remembering(memory(store), ScriptedEndpoint("noted", "yes").client)
    store.fail_search = RuntimeError("down")
    await run(agent, "I like soup.")
    assert texts(store)[0] == "I like soup."
    store.fail_search, store.fail_write = None, RuntimeError("down")
    assert "I like soup." in remembered(await run(agent))
    assert len(texts(store)) == 2


async def test_4_8_the_history_is_kept_when_the_memory_fails(run):
    store = FaultyStore()
    store.fail_search = store.fail_write = RuntimeError("down")
    agent = remembering(memory(store), ScriptedEndpoint("one", "two").client)
    session = agent.create_session()
    session.state["user_id"] = "alice"
    await agent.run("first", session=session)
    response = await agent.run("second", session=session)
    assert [m.text for m in response.trace.sent] == ["first", "one", "second"]
    assert [f.where.rpartition(".")[2] for f in response.trace.failures] == ["search", "write"]


async def test_4_8_a_failing_search_on_demand_gives_the_model_an_empty_result(run, log):
    store = FaultyStore()
    store.fail_search = RuntimeError(SECRET)
    endpoint = ScriptedEndpoint(call("Search", userQuestion="soup"), "unknown")
    provider = memory(store, search_time=SearchTime.ON_DEMAND_FUNCTION_CALLING)
    response = await run(remembering(provider, endpoint.client))
    assert response.text.strip() == "unknown"
    assert endpoint.sent()[-1] == ("tool", "")
    assert [f.where for f in response.trace.failures] == ["ChatHistoryMemoryProvider.search"]
    assert len(complaints(log)) == 1


@pytest.mark.parametrize("what", ["search", "write"])
async def test_4_8_a_slow_store_is_given_up_after_the_timeout(run, log, what):
    store = FaultyStore()
    setattr(store, f"slow_{what}", 0.5)
    response = await run(remembering(memory(store, timeout=0.05), ScriptedEndpoint("yes").client))
    assert response.text.strip() == "yes"
    assert [(f.where, f.error) for f in response.trace.failures] == [
        (f"ChatHistoryMemoryProvider.{what}", "TimeoutError")
    ]
    assert len(complaints(log)) == 1


async def test_4_8_without_a_timeout_a_slow_store_is_waited_for():
    store = FaultyStore()
    store.slow_search = store.slow_write = 0.05
    response = await ask(remembering(memory(store), ScriptedEndpoint("yes").client), "soup")
    assert (response.trace.failures, texts(store)) == ([], ["soup", "yes"])


async def test_4_8_a_slow_store_does_not_block_other_runs():
    all_here = threading.Barrier(4)

    class Meeting(FaultyStore):
        def search(self, collection, query, **options):
            all_here.wait(timeout=10)  # until four searches are under way at once
            return super().search(collection, query, **options)

    store = Meeting()
    agent = remembering(memory(store), ScriptedEndpoint().client)
    responses = await asyncio.gather(*(ask(agent, "soup", f"user {number}") for number in range(4)))
    assert [response.trace.failures for response in responses] == [[]] * 4
    assert threading.get_ident() not in store.threads  # the event loop's thread never works for the store


class DeadEmbedder(BagEmbedder):
    """Fails from the first question for its dimension on."""

    @property
    def dimensions(self):
        raise ConnectionError(SECRET)

    def embed(self, texts, role="document"):
        raise ConnectionError(SECRET)


async def test_4_8_an_embedder_that_can_not_be_reached_keeps_the_answer(run, log):
    scope = State(MemoryScope(user_id="alice"))
    store = InMemoryVectorStore(DeadEmbedder())
    provider = ChatHistoryMemoryProvider(store, COLLECTION, 64, lambda session: scope)
    response = await run(remembering(provider, ScriptedEndpoint("yes").client))
    assert response.text.strip() == "yes"
    assert [(f.where.rpartition(".")[2], f.error) for f in response.trace.failures] == [
        ("search", "ConnectionError"),
        ("write", "ConnectionError"),
    ]
    assert len(complaints(log)) == 2
    assert "spicy" not in log.text


async def test_4_8_a_redactor_that_fails_neither_leaks_nor_costs_the_answer(run, log):
    def broken(text):
        raise ValueError(text)

    store = FaultyStore()
    response = await run(remembering(memory(store, redactor=broken), ScriptedEndpoint("yes").client))
    assert (response.text.strip(), response.trace.failures) == ("yes", [])
    assert len(texts(store)) == 2
    assert "soup" not in log.text
    assert "<redacted>" in log.text


async def test_4_8_events_that_can_not_be_stored_keep_the_answer(run, log):
    from memlab import Event

    store = FaultyStore()
    store.fail_write = RuntimeError(SECRET)

    def order() -> Event:
        return Event("order", "ordered: soup")

    response = await run(remembering(memory(store), ScriptedEndpoint(call("order"), "enjoy").client, tools=order))
    assert response.text.strip() == "enjoy"
    assert [f.where for f in response.trace.failures] == ["ChatHistoryMemoryProvider.write"] * 2
    assert len(complaints(log)) == 2


@pytest.mark.parametrize("side", ["storage_input_request_message_filter", "storage_input_response_message_filter"])
async def test_4_8_a_storage_filter_that_fails_keeps_the_answer(run, log, side):
    def broken(messages):
        raise ValueError(messages[0].text)

    provider = memory(**{side: broken})
    response = await run(remembering(provider, ScriptedEndpoint("yes").client))
    assert response.text.strip() == "yes"
    assert [f.error for f in response.trace.failures] == ["ValueError"]
    assert "soup" not in log.text


async def test_4_8_a_clock_without_a_zone_keeps_the_answer_and_says_so(run):
    from datetime import datetime

    response = await run(remembering(memory(clock=lambda: datetime(2025, 1, 1)), ScriptedEndpoint("yes").client))
    assert response.text.strip() == "yes"
    assert [f.error for f in response.trace.failures] == ["InvalidInputError"]


async def test_4_8_a_cancelled_run_is_cancelled_and_stores_nothing():
    store = FaultyStore()
    store.slow_search = 0.2
    task = asyncio.create_task(ask(remembering(memory(store), ScriptedEndpoint().client), "soup"))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert texts(store) == []
