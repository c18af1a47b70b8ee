"""Random conversations against a simple reference model: nothing lost, doubled, out of order, or out of its scope.

What a run does is written into the caller's text: "soup|tool|fail" asks for a tool once, and then the model fails.
"""

import asyncio
import json
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from memlab import (
    EVERYONE,
    Agent,
    AgentRunError,
    AgentSession,
    ChatReply,
    FileHistoryProvider,
    InMemoryHistoryProvider,
    MemoryScope,
    Message,
    SqliteHistoryProvider,
    ToolCall,
    UsageDetails,
    record_event,
    tool,
)
from tests.support_memory import COLLECTION, FaultyStore, injected, memory, records

USERS = ("alice", "bob", "alice ")
TEXTS = st.sampled_from(["soup", "order a pizza", "我叫张三", "half \ufffd a face"])
PLANS = st.sampled_from(
    ["", "", "", "|fail", "|tool", "|bad", "|tool|tool", "|tool|fail", "|bad|fail", "|tool|tool|fail"]
)
FAULTS = st.sampled_from(["", "", "", "search", "write", "both"])
HISTORIES = {
    "in memory": lambda place: InMemoryHistoryProvider(),
    "file": lambda place: FileHistoryProvider(place),
    "sqlite": lambda place: SqliteHistoryProvider(place / "history.db"),
}


class Scripted:
    """A model that does what the caller's text says."""

    async def complete(self, messages, tools, options, *, stream):
        await asyncio.sleep(0)
        asked = max(i for i, m in enumerate(messages) if m.role == "user" and m.source.kind == "external")
        text, *plan = messages[asked].text.split("|")
        rounds = sum(m.role == "tool" for m in messages[asked:])
        step = plan[rounds] if rounds < len(plan) else "answer"
        if step == "fail":
            raise RuntimeError("the model failed")
        if step == "answer" and stream:
            yield "re "
            yield text
        said = f"re {text}" if step == "answer" else ToolCall(f"c{rounds}", step, json.dumps({"dish": text}))
        yield ChatReply(Message("assistant", said), UsageDetails(), "stop", "scripted")


@tool(name="tool")
def order(dish: str) -> str:
    """Place an order."""
    record_event("order", f"ordered {dish}")
    return "done"


@tool(name="bad")
def refuse(dish: str) -> str:
    """Fail after the event."""
    record_event("order", f"never {dish}")
    raise RuntimeError("closed")


class Reference:
    """What should be remembered: a list of (role, text) a session, and the records of each user."""

    def __init__(self, each_call):
        self.each_call = each_call
        self.history = {}  # session_id -> [(role, text)]
        self.ids = {}  # session_id -> ids of messages stored
        self.memories = {user: {} for user in USERS}  # user -> {record: (kind, text)}, oldest first

    def run(self, user, session_id, text, message_id, *, abandoned, write_fails):
        """One run. Whether it succeeds."""
        name, *plan = text.split("|")
        produced, saved, failed = [], 0, False
        for step in [*plan, "answer"]:
            if step == "fail" or (step == "answer" and abandoned):
                failed = True
                break
            produced.append(("assistant", f"re {name}" if step == "answer" else ""))
            saved = len(produced)
            if step != "answer":
                produced.append(("tool", ""))
                if step == "tool" and not write_fails:
                    self._remember(user, "order", f"ordered {name}")
        kept = (produced[:saved] if self.each_call else []) if failed else produced
        if kept:
            known = self.ids.setdefault(session_id, set())
            new = [] if message_id in known else [("user", text)]
            known |= {message_id} - {None}
            self.history.setdefault(session_id, []).extend([*new, *kept])
        if not failed and not write_fails:
            self._remember(user, "message", text, message_id)
            self._remember(user, "message", f"re {name}")
        return not failed

    def _remember(self, user, kind, text, message_id=None):
        mine = self.memories[user]
        key = message_id or object()
        mine.pop(key, None)  # a message of one id is one record, as new as when it was last said
        mine[key] = (kind, text)

    def sent(self, session_id):
        """What of a history may be sent: calls that were never answered are left out."""
        stored = self.history.get(session_id, [])
        answered = [i for i, (role, _) in enumerate(stored[1:]) if role == "tool"]
        return [item for i, item in enumerate(stored) if item != ("assistant", "") or i in answered]


class Conversations(RuleBasedStateMachine):
    """Users, sessions, failures and restarts."""

    @initialize(kind=st.sampled_from(sorted(HISTORIES)), each_call=st.booleans())
    def begin(self, kind, each_call):
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.kind, self.each_call = kind, each_call
        self.store = FaultyStore()
        self.reference = Reference(each_call)
        self.sessions = []
        self.restart_the_program()
        self.new_session(USERS[0])

    def teardown(self):
        if hasattr(self, "loop"):
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            self.folder.cleanup()

    @rule()
    def restart_the_program(self):
        """New providers and a new agent; the sessions went through JSON."""
        self.history = HISTORIES[self.kind](Path(self.folder.name))
        self.agent = Agent(
            Scripted(),
            context_providers=[self.history, memory(self.store, max_results=4)],
            tools=[order, refuse],
            require_per_service_call_history_persistence=self.each_call,
        )
        stored = [json.dumps(session.to_dict()) for session in self.sessions]
        self.sessions = [AgentSession.from_dict(json.loads(text)) for text in stored]

    @rule(user=st.sampled_from(USERS))
    def new_session(self, user):
        session = self.agent.create_session(session_id=f"session {len(self.sessions)}")
        session.state["user_id"] = user
        self.sessions.append(session)

    @rule(
        number=st.integers(0, 99),
        text=TEXTS,
        plan=PLANS,
        fault=FAULTS,
        how=st.sampled_from(["plain", "plain", "streamed", "abandoned"]),
        same_id=st.booleans(),
    )
    def say(self, number, text, plan, fault, how, same_id):
        session = self.sessions[number % len(self.sessions)]
        user = session.state["user_id"]
        text += plan
        message_id = f"id of {text}" if same_id else None
        before = list(self.reference.memories[user].values())
        sent = self.reference.sent(session.session_id)
        self._set_faults(fault)
        good = self.reference.run(
            user,
            session.session_id,
            text,
            message_id,
            abandoned=how == "abandoned",
            write_fails=fault in ("write", "both"),
        )
        response = self._run(session, Message("user", text, message_id=message_id), how)
        self._set_faults("")
        assert (response is not None) == good
        if response is None:
            return
        history = [(m.role, m.text) for m in response.trace.sent if m.source.kind == "history"]
        assert history == sent
        assert [m.text for m in response.trace.sent if m.source.kind == "external"] == [text]
        found = Counter(line for text in injected(response) for line in text.split("\n")[2:])
        mine = Counter(text for _, text in before)
        assert found <= mine  # nobody else's, and nothing twice
        assert found.total() == (0 if fault in ("search", "both") else min(4, mine.total()))
        failures = Counter(f.where.rpartition(".")[2] for f in response.trace.failures)
        assert failures["search"] == (fault in ("search", "both"))
        assert failures["write"] == (fault in ("write", "both")) * (1 + text.count("|tool"))
        assert set(failures) <= {"search", "write"}

    @rule(number=st.integers(0, 99), words=st.lists(TEXTS, min_size=2, max_size=3))
    def say_at_once(self, number, words):
        """Several runs at once on one session are served in call order."""
        session = self.sessions[number % len(self.sessions)]

        async def all_at_once():
            await asyncio.gather(*(self.agent.run(word, session=session) for word in words))

        self.loop.run_until_complete(all_at_once())
        for word in words:
            self.reference.run(
                session.state["user_id"], session.session_id, word, None, abandoned=False, write_fails=False
            )

    def _set_faults(self, fault):
        self.store.fail_search = RuntimeError("search") if fault in ("search", "both") else None
        self.store.fail_write = RuntimeError("write") if fault in ("write", "both") else None

    def _run(self, session, message, how):
        async def run():
            try:
                if how == "plain":
                    return await self.agent.run(message, session=session)
                stream = self.agent.run(message, session=session, stream=True)
                if how == "streamed":
                    return await stream.get_final_response()
                await anext(stream)
                await stream.aclose()
            except (RuntimeError, AgentRunError):
                return None

        return self.loop.run_until_complete(run())

    @invariant()
    def every_history_is_as_it_should_be(self):
        for session in getattr(self, "sessions", []):
            loading = self.history.get_messages(
                session.session_id, state=session.state.setdefault(self.history.source_id, {})
            )
            stored = [(m.role, m.text) for m in self.loop.run_until_complete(loading)]
            assert stored == self.reference.history.get(session.session_id, [])

    @invariant()
    def every_memory_is_as_it_should_be(self):
        if not hasattr(self, "store"):
            return
        for user in USERS:
            stored = [(r.kind, r.text) for r in records(self.store, MemoryScope(user_id=user))]
            assert stored == list(self.reference.memories[user].values())
        everything = sum(map(len, self.reference.memories.values()))
        assert self.store.count(COLLECTION, scope=EVERYONE) == everything


def test_random_conversations_match_a_simple_reference_model():
    run_state_machine_as_test(Conversations, settings=settings(max_examples=30, stateful_step_count=25, deadline=None))
