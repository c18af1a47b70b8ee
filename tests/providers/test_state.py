"""A provider's own, typed part of a session's state (SPEC 3)."""

import json
from dataclasses import dataclass

import pytest

from memlab import (
    AgentSession,
    ContextProvider,
    InvalidInputError,
    InvalidTypeError,
    Message,
    ProviderSessionState,
    register_state_type,
)
from tests.support import ScriptedEndpoint


@dataclass
class Diet:
    """A learner's own state."""

    dishes: list

    def to_dict(self):
        return {"dishes": self.dishes}

    @classmethod
    def from_dict(cls, data):
        return cls(list(data["dishes"]))


register_state_type(Diet, type_id="tests.diet")


def round_trip(session):
    return AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))


def test_3_the_state_is_initialised_once_per_session_and_kept_under_its_key():
    made = []
    state = ProviderSessionState(lambda session: made.append(session) or Diet([]), "diet")
    one, two = AgentSession(), AgentSession()
    first = state.get_or_initialize(one)
    assert state.get_or_initialize(one) is first
    state.get_or_initialize(two).dishes.append("soup")
    assert (made, first.dishes) == ([one, two], [])
    assert set(one.state) == {"diet"}


def test_3_the_initializer_gets_the_session():
    session = AgentSession(session_id="s1")
    session.state["user_id"] = "alice"
    state = ProviderSessionState(lambda s: {"who": s.state["user_id"], "where": s.session_id}, "mine")
    assert state.get_or_initialize(session) == {"who": "alice", "where": "s1"}


def test_3_what_is_saved_comes_back_also_from_json():
    state = ProviderSessionState(lambda session: Diet(["none"]), "diet", Diet)
    session = AgentSession()
    state.save(session, Diet(["soup"]))
    assert state.get_or_initialize(session) == Diet(["soup"])
    assert state.get_or_initialize(round_trip(session)) == Diet(["soup"])


def test_3_two_keys_are_two_states():
    session = AgentSession()
    one, two = (ProviderSessionState(lambda session: {}, key) for key in ("one", "two"))
    one.get_or_initialize(session)["seen"] = 1
    assert two.get_or_initialize(session) == {}


def test_3_an_error_of_the_initializer_is_raised_and_leaves_nothing_half_made():
    errors = [KeyError("no user")]

    def initializer(session):
        if errors:
            raise errors.pop()
        return {"user": "alice"}

    state, session = ProviderSessionState(initializer, "mine"), AgentSession()
    with pytest.raises(KeyError, match="no user"):
        state.get_or_initialize(session)
    assert state.get_or_initialize(session) == {"user": "alice"}


@pytest.mark.parametrize("wrong", [None, {}, "diet", Diet])
def test_3_a_state_of_the_wrong_type_names_the_right_one(wrong):
    state = ProviderSessionState(lambda session: wrong, "diet", Diet)
    with pytest.raises(InvalidTypeError, match=r"diet.*must return a Diet"):
        state.get_or_initialize(AgentSession())
    with pytest.raises(InvalidTypeError, match="must return a Diet"):
        state.save(AgentSession(), wrong)


@pytest.mark.parametrize("key", ["", " ", None, 5])
def test_3_a_key_is_a_name(key):
    with pytest.raises(InvalidInputError, match="state_key"):
        ProviderSessionState(lambda session: {}, key)


def test_3_an_initializer_is_a_function():
    with pytest.raises(InvalidTypeError, match="function of the session"):
        ProviderSessionState({"user": "alice"}, "mine")


@pytest.mark.parametrize("damage", [None, 5, "text", []])
async def test_3_a_damaged_part_of_the_state_is_named(damage):
    class Counter(ContextProvider):
        async def before_run(self, *, agent, session, context, state):
            state["runs"] = state.get("runs", 0) + 1

    session = AgentSession()
    session.state["counter"] = damage
    with pytest.raises(InvalidInputError, match=r"session\.state\['counter'\]"):
        await ScriptedEndpoint().agent(context_providers=[Counter("counter")]).run("hi", session=session)
    with pytest.raises(InvalidTypeError, match=r"session\.state\['counter'\]"):
        ProviderSessionState(lambda session: {}, "counter").get_or_initialize(session)


@pytest.mark.parametrize("damage", [None, 5, "hi", {}, ["hi"], [Message("user", "hi"), {"role": "user"}]])
async def test_3_a_damaged_history_in_the_state_is_named(damage):
    session = AgentSession()
    session.state["in_memory"] = {"messages": damage}
    with pytest.raises(InvalidInputError, match=r"session\.state\['in_memory'\]\['messages'\]"):
        await ScriptedEndpoint().agent().run("hi", session=session)


def test_3_two_providers_with_one_key_are_an_error_when_the_agent_is_built():
    with pytest.raises(InvalidInputError, match="share the source_id 'same'"):
        ScriptedEndpoint().agent(context_providers=[ContextProvider("same"), ContextProvider("same")])
