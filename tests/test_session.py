"""Sessions: ids, state, and their way to JSON and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import AgentSession, InvalidInputError, InvalidTypeError, Message, register_state_type
from tests.test_messages import messages

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(["type", "items"]), inner | st.sampled_from(["message", "dict"]))
    ),
    max_leaves=8,
)


class Order:
    """A learner's own type."""

    def __init__(self, dish):
        self.dish = dish

    def __eq__(self, other):
        return isinstance(other, Order) and other.dish == self.dish

    def to_dict(self):
        return {"dish": self.dish}

    @classmethod
    def from_dict(cls, data):
        return cls(data["dish"])


register_state_type(Order)


def round_trip(session):
    return AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))


@given(st.dictionaries(st.text(), json_values | messages | st.builds(Order, st.text())))
def test_a_session_survives_json(state):
    session = AgentSession(session_id="lesson", service_session_id="resp_1")
    session.state = state
    twin = round_trip(session)
    assert (twin.session_id, twin.service_session_id, twin.state) == ("lesson", "resp_1", state)


def test_messages_inside_a_registered_type_come_back():
    class Notebook:
        def __init__(self, pages):
            self.pages = pages

    register_state_type(Notebook, encoder=lambda n: {"pages": n.pages}, decoder=lambda data: Notebook(data["pages"]))
    session = AgentSession()
    session.state["book"] = Notebook([Message("user", "hi"), Message("user", "hi").to_dict()])
    assert round_trip(session).state["book"].pages == session.state["book"].pages


def nested(levels, wrap):
    value = "end"
    for _ in range(levels):
        value = wrap(value)
    return value


def circle(make):
    """A state with something that holds itself."""
    inner = []
    state = {"visit": {"orders": [make(inner)]}}
    inner.append(state["visit"])
    return state


WRAPS = {"list": lambda v: [v], "dict": lambda v: {"k": v}, "typed": lambda v: {"type": "dict", "k": v}, "Order": Order}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_a_state_nested_within_reason_survives_json(wrap):
    session = AgentSession()
    session.state["plan"] = nested(90, wrap)
    assert round_trip(session).state == session.state


@pytest.mark.parametrize("levels", [201, 1_000, 50_000])
@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_a_state_nested_too_deeply_is_named_by_its_path(wrap, levels):
    session = AgentSession()
    session.state["plan"] = nested(levels, wrap)
    with pytest.raises(InvalidInputError, match=r"^state\.plan.*more than 200 levels.*store a flat list"):
        session.to_dict()


@pytest.mark.parametrize("make", [lambda inner: inner, WRAPS["dict"], Order], ids=["list", "dict", "Order"])
def test_a_state_that_holds_itself_is_named_by_its_path(make):
    session = AgentSession()
    session.state = circle(make)
    with pytest.raises(InvalidInputError, match=r"^state\.visit\.orders\[0\]\S*\[0\] holds .*store the id"):
        session.to_dict()


def test_what_stands_in_a_state_twice_is_no_circle():
    session, shared = AgentSession(), {"dish": "soup"}
    session.state = {"first": shared, "all": [shared, [shared]]}
    assert round_trip(session).state == session.state


def test_an_encoder_without_end_is_named_by_its_path():
    class Endless:
        def to_dict(self):
            return self.to_dict()

    register_state_type(Endless, decoder=lambda data: Endless())
    session = AgentSession()
    session.state["visit"] = Endless()
    with pytest.raises(InvalidInputError, match=r"^state\.visit .*without end"):
        session.to_dict()


def test_a_stored_state_nested_too_deeply_is_refused():
    with pytest.raises(InvalidInputError, match=r"^state\.plan.*more than 200 levels"):
        AgentSession.from_dict({"session_id": "s", "state": {"plan": nested(1_000, WRAPS["list"])}})


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"a": {"b": [1, object()]}}, r"state\.a\.b\[1\].*object"),
        ({"score": float("nan")}, r"state\.score.*nan"),
        ({"a": {1: "x"}}, r"state\.a has the key 1"),
        ({"when": {"tags": {"x"}}}, r"state\.when\.tags.*set"),
    ],
)
def test_a_value_that_json_cannot_keep_is_named_by_its_path(state, path):
    session = AgentSession()
    session.state = state
    with pytest.raises(InvalidTypeError, match=path):
        session.to_dict()


@pytest.mark.parametrize(
    ("stored", "named"),
    [
        (["lesson"], "list"),
        ({}, "session_id"),
        ({"session_id": ""}, "session_id"),
        ({"session_id": "x", "type": "order"}, "order"),
        ({"session_id": "x", "history": []}, "history"),
        ({"session_id": "x", "state": []}, "state is list"),
        ({"session_id": "x", "state": {"m": [{"type": "message"}]}}, r"state\.m\[0\].*message"),
        ({"session_id": "x", "state": {"o": {"type": "order"}}}, r"state\.o.*order"),
    ],
)
def test_a_damaged_session_is_refused_with_what_is_wrong(stored, named):
    with pytest.raises(InvalidInputError, match=named):
        AgentSession.from_dict(stored)


@pytest.mark.parametrize("given", [5, "Order", Order("soup")])
def test_a_state_type_is_a_class(given):
    with pytest.raises(InvalidTypeError, match=r"cls is .*pass the class"):
        register_state_type(given)


@pytest.mark.parametrize("session_id", ["", "  ", 5])
def test_a_bad_session_id_is_refused(session_id):
    with pytest.raises(InvalidInputError, match="session_id"):
        AgentSession(session_id=session_id)


def test_every_session_has_an_id_of_its_own():
    assert AgentSession().session_id != AgentSession().session_id


def test_a_type_without_a_way_to_json_is_refused():
    with pytest.raises(InvalidInputError, match="Plain has no to_dict"):
        register_state_type(type("Plain", (), {}))


@pytest.mark.parametrize("taken", ["order", "message", "dict"])
def test_two_types_never_share_an_id(taken):
    with pytest.raises(InvalidInputError, match=f"'{taken}' belongs to"):
        register_state_type(type("Other", (Order,), {}), type_id=taken)
