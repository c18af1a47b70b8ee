"""The tracking provider's printout, and the provider of one message (SPEC 4, point 12)."""

from memlab import (
    ContextTrackingProvider,
    InMemoryHistoryProvider,
    MessageProvider,
    MessageSource,
    SearchTime,
    tool,
)
from tests.support import ScriptedEndpoint
from tests.support_memory import FaultyStore, ask, lab, memory, texts

RULE = "-" * 20

FIRST = f"""\
{RULE} Message 1 {RULE}
Role: user
Text: I cannot eat spicy food.
"""

SECOND = f"""\
{RULE} Message 1 {RULE}
Role: user
Text: spicy food?
{RULE} Message 2 {RULE}
Role: user
Text: ## Memories
Consider the following memories when answering user questions:
I cannot eat spicy food.
"""

ON_DEMAND = f"""\
{RULE} Message 1 {RULE}
Role: user
Text: spicy food?
{RULE} Tool Search {RULE}
Description: Allows searching for related previous chat history to help answer the user question.
JsonSchema:
{{
  "type": "object",
  "properties": {{
    "userQuestion": {{
      "type": "string"
    }}
  }},
  "required": [
    "userQuestion"
  ]
}}
"""


async def test_4_12_two_requests_in_two_sessions_print_exactly_this(capsys):
    provider = memory(storage_input_response_message_filter=lambda messages: [])
    agent = lab().chat.as_agent(context_providers=[provider, ContextTrackingProvider()])
    await ask(agent, "I cannot eat spicy food.")
    assert capsys.readouterr().out == FIRST
    await ask(agent, "spicy food?")
    assert capsys.readouterr().out == SECOND


async def test_4_12_on_demand_prints_the_tool_exactly_like_this(capsys):
    provider = memory(search_time=SearchTime.ON_DEMAND_FUNCTION_CALLING)
    agent = lab().chat.as_agent(context_providers=[provider, ContextTrackingProvider()])
    await ask(agent, "spicy food?")
    assert capsys.readouterr().out == ON_DEMAND


async def test_4_12_it_prints_what_is_known_at_its_place_in_the_list():
    before, after = [], []
    agent = ScriptedEndpoint().agent(
        context_providers=[
            ContextTrackingProvider("first", write=before.append),
            MessageProvider("a reminder"),
            ContextTrackingProvider("last", write=after.append),
        ],
    )
    await agent.run("hi")
    assert before == [f"{RULE} Message 1 {RULE}", "Role: user", "Text: hi"]
    assert after[:3] == before
    assert after[3:] == [f"{RULE} Message 2 {RULE}", "Role: user", "Text: a reminder"]


async def test_4_12_the_callers_input_comes_first_then_the_history():
    lines = []
    history = InMemoryHistoryProvider()
    agent = ScriptedEndpoint("answer").agent(
        context_providers=[history, ContextTrackingProvider(write=lines.append)],
        tools=tool(name="now", description="The time.")(lambda: "noon"),
    )
    session = agent.create_session()
    await agent.run("old", session=session)
    lines.clear()
    await agent.run(["new", "newer"], session=session)
    assert [line for line in lines if line.startswith(("Text", "Role"))] == [
        *("Role: user", "Text: new", "Role: user", "Text: newer"),
        *("Role: user", "Text: old", "Role: assistant", "Text: answer"),
    ]
    assert lines[12:14] == [f"{RULE} Tool now {RULE}", "Description: The time."]


async def test_4_12_tracking_changes_nothing():
    seen, unseen = ScriptedEndpoint(), ScriptedEndpoint()
    await seen.agent(context_providers=[ContextTrackingProvider(write=lambda line: None)]).run("hi")
    await unseen.agent().run("hi")
    assert seen.requests == unseen.requests


async def test_4_12_a_message_provider_adds_one_user_message_each_run():
    endpoint, store = ScriptedEndpoint("one", "two"), FaultyStore()
    provider = MessageProvider("Be different.")
    agent = endpoint.agent(context_providers=[provider, memory(store)])
    session = agent.create_session()
    session.state["user_id"] = "alice"
    await agent.run("hi", session=session)
    response = await agent.run("again", session=session)
    added = [m for m in response.trace.sent if m.source == MessageSource("provider", "message")]
    assert [(m.role, m.text) for m in added] == [("user", "Be different.")]
    assert [text for _, text in endpoint.sent()].count("Be different.") == 1  # it is not stored in the history
    assert "Be different." not in texts(store)
