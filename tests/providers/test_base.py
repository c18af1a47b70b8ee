"""Context providers: hooks, their order, and what they may add."""

import pytest

from memlab import (
    ContextProvider,
    InMemoryHistoryProvider,
    InvalidInputError,
    InvalidTypeError,
    Message,
    MessageSource,
    SessionContext,
    tool,
)
from tests.support import ScriptedEndpoint


class Reminder(ContextProvider):
    """Adds one message and notes when its hooks are called."""

    def __init__(self, source_id="reminder", events=None, text="remember"):
        super().__init__(source_id)
        self.events = [] if events is None else events
        self.message = Message("user", text)

    async def before_run(self, *, agent, session, context, state):
        self.events.append(f"before {self.source_id}")
        context.extend_messages(self, [self.message])

    async def after_run(self, *, agent, session, context, state):
        self.events.append(f"after {self.source_id}: {context.response.text}")


async def test_before_hooks_run_in_order_and_after_hooks_reversed():
    events = []
    endpoint = ScriptedEndpoint(lambda body: events.append("model") or "yes")
    agent = endpoint.agent(context_providers=[Reminder("a", events), Reminder("b", events)])
    await agent.run("hi")
    assert events == ["before a", "before b", "model", "after b: yes", "after a: yes"]


async def test_added_messages_are_stamped_copies():
    reminder = Reminder()
    response = await ScriptedEndpoint().agent(context_providers=[reminder]).run("hi")
    assert response.trace.sent[-1].source == MessageSource("provider", "reminder")
    assert reminder.message.source == MessageSource("external")


async def test_a_provider_may_add_instructions_tools_and_plain_strings():
    class Helper(ContextProvider):
        async def before_run(self, *, agent, session, context, state):
            context.extend_instructions(self.source_id, "Answer in English.")
            context.extend_tools(self.source_id, [tool(name="now")(lambda: "noon")])
            context.extend_messages(self, "It is Monday.")

    endpoint = ScriptedEndpoint()
    await endpoint.agent(instructions="Be brief.", context_providers=[Helper("helper")]).run("hi")
    assert endpoint.sent() == [
        ("system", "Be brief.\n\nAnswer in English."),
        ("user", "hi"),
        ("user", "It is Monday."),
    ]
    assert [t["function"]["name"] for t in endpoint.requests[0]["tools"]] == ["now"]


async def test_a_provider_sees_input_and_others_messages_by_source():
    seen = {}

    class Watcher(ContextProvider):
        async def before_run(self, *, agent, session, context, state):
            seen["others"] = [m.text for m in context.get_messages(exclude_sources={"b"})]
            seen["all"] = [m.text for m in context.get_messages(include_input=True)]

        async def after_run(self, *, agent, session, context, state):
            chosen = context.get_messages(sources={"a"}, include_response=True)
            seen["answer"] = [m.text for m in chosen]

    agent = ScriptedEndpoint("yes").agent(context_providers=[Reminder("a"), Reminder("b", text="B"), Watcher("w")])
    await agent.run("hi")
    assert seen == {"others": ["remember"], "all": ["remember", "B", "hi"], "answer": ["remember", "yes"]}


async def test_a_providers_state_lives_in_the_session_and_nowhere_else():
    class Counter(ContextProvider):
        async def before_run(self, *, agent, session, context, state):
            state["runs"] = state.get("runs", 0) + 1

    agent = ScriptedEndpoint().agent(context_providers=[Counter("counter")])
    one, two = agent.create_session(), agent.create_session()
    for session in (one, one, two):
        await agent.run("hi", session=session)
    assert (one.state["counter"], two.state["counter"]) == ({"runs": 2}, {"runs": 1})


@pytest.mark.parametrize("source_id", ["", " ", None, 5])
def test_a_provider_needs_a_name(source_id):
    with pytest.raises(InvalidInputError, match="source_id"):
        ContextProvider(source_id)


@pytest.mark.parametrize(
    ("method", "arguments", "said"),
    [
        ("extend_messages", (5, ["hi"]), "source is 5.*its source_id"),
        ("extend_messages", ("a", 5), "a message is 5.*a string, a Message"),
        ("extend_messages", ("a", [{"role": "user", "content": "hi"}]), r"Message\("),
        ("extend_instructions", ("a", 5), "instructions is 5.*a string or a list"),
        ("extend_instructions", ("a", ["x", 5]), "an instruction is 5.*a string"),
        ("extend_tools", ("a", 5), "a tool is 5.*a function"),
    ],
)
def test_a_context_refuses_what_it_cannot_add_and_says_what_to_pass(method, arguments, said):
    with pytest.raises(InvalidTypeError, match=said):
        getattr(SessionContext([]), method)(*arguments)


def test_two_providers_of_one_name_are_refused():
    with pytest.raises(InvalidInputError, match="'a'"):
        ScriptedEndpoint().agent(context_providers=[Reminder("a"), Reminder("a")])
    with pytest.raises(InvalidInputError, match="'in_memory'"):  # the name of the history that comes by itself
        ScriptedEndpoint().agent(context_providers=[Reminder("in_memory")])


def test_two_providers_that_load_history_are_refused():
    histories = [InMemoryHistoryProvider("a"), InMemoryHistoryProvider("b")]
    with pytest.raises(InvalidInputError, match="a and b"):
        ScriptedEndpoint().agent(context_providers=histories)
    histories[1].load_messages = False
    ScriptedEndpoint().agent(context_providers=histories)
