"""Whose memories: storage scopes stamp, search scopes filter (SPEC 4, points 1, 2 and 10; the state of point 0)."""

import copy
import pickle
from dataclasses import fields
from itertools import combinations

import numpy as np
import pytest

from memlab import (
    EVERYONE,
    AgentSession,
    ChatHistoryMemoryProvider,
    ChatHistoryMemoryProviderOptions,
    InMemoryVectorStore,
    InvalidInputError,
    InvalidTypeError,
    MemoryRecord,
    MemoryScope,
    SearchTime,
    State,
)
from tests.support import ScriptedEndpoint
from tests.support_memory import (
    COLLECTION,
    BagEmbedder,
    FaultyStore,
    ask,
    lab,
    memory,
    records,
    remembered,
    remembering,
    texts,
)

FIELDS = ("application_id", "agent_id", "session_id", "user_id")
COMBINATIONS = [names for size in range(1, 5) for names in combinations(FIELDS, size)]
FULL = {"application_id": "app", "agent_id": "cook", "session_id": "s1", "user_id": "alice"}


def scope_of(names, **changes):
    return MemoryScope(**{name: {**FULL, **changes}[name] for name in names})


# --- 4.1: exact equality of every field that is set ---


def test_4_1_there_are_fifteen_combinations():
    assert len(COMBINATIONS) == 15


@pytest.mark.parametrize("names", COMBINATIONS, ids="+".join)
async def test_4_1_each_of_the_15_combinations_finds_its_own_and_nobody_elses(names):
    store = FaultyStore()
    strangers = [scope_of(FIELDS, **{name: FULL[name] + "2"}) for name in names]
    for number, scope in enumerate([scope_of(FIELDS), *strangers]):
        await ask(remembering(memory(store, State(scope)), ScriptedEndpoint("noted").client), f"soup {number}")
    searcher = memory(store, State(scope_of(FIELDS), scope_of(names)), max_results=50)
    found = remembered(await ask(remembering(searcher), "soup noted"))
    assert sorted(found) == ["noted", "soup 0"]  # the record that differs in any one set field is not found


@pytest.mark.parametrize("names", COMBINATIONS, ids="+".join)
async def test_4_1_fields_that_are_not_set_are_neither_stamped_nor_filtered(names):
    store = FaultyStore()
    narrow = State(scope_of(names))
    await ask(remembering(memory(store, narrow)), "I like soup.")
    assert {tuple(record.scope.set_fields()) for record in records(store)} == {names}
    if len(names) < 4:
        other = State(scope_of(FIELDS), scope_of(names))
        assert "I like soup." in remembered(await ask(remembering(memory(store, other)), "soup"))


async def test_4_1_everyone_is_the_only_way_to_search_unscoped():
    store = FaultyStore()
    for user in ("alice", "bob"):
        await ask(remembering(memory(store), ScriptedEndpoint("noted").client), f"{user} likes soup", user)
    everyone = memory(store, lambda s: State(MemoryScope(user_id=s.state["user_id"]), EVERYONE), max_results=9)
    found = remembered(await ask(remembering(everyone), "who likes soup", "carol"))
    assert {"alice likes soup", "bob likes soup"} <= set(found)
    for empty in (State, lambda scope: State(MemoryScope(user_id="alice"), scope)):
        with pytest.raises(InvalidInputError, match="EVERYONE"):
            empty(MemoryScope())


async def test_4_1_search_scope_defaults_to_the_storage_scope():
    store = FaultyStore()
    assert State(MemoryScope(user_id="alice")).searched == MemoryScope(user_id="alice")
    await ask(remembering(memory(store)), "I like soup.", "alice")
    assert remembered(await ask(remembering(memory(store)), "what do I like, soup?", "bob")) == []
    assert "I like soup." in remembered(await ask(remembering(memory(store)), "what do I like, soup?", "alice"))


def test_4_1_search_and_storage_scope_never_inherit_from_each_other():
    state = State(MemoryScope(application_id="app", user_id="alice"), MemoryScope(application_id="app"))
    assert state.searched.set_fields() == {"application_id": "app"}
    assert state.storage_scope.set_fields() == {"application_id": "app", "user_id": "alice"}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u3000"])
def test_4_1_a_blank_value_is_an_error_not_unset(field, blank):
    with pytest.raises(InvalidInputError, match=f"{field} is blank"):
        MemoryScope(**{field: blank})


async def test_4_1_a_blank_user_is_an_error_of_the_run_not_a_search_of_everyone():
    store = FaultyStore()
    await ask(remembering(memory(store)), "I like soup.", "alice")
    with pytest.raises(InvalidInputError, match="user_id is blank"):
        await ask(remembering(memory(store)), "who likes soup?", " ")


@pytest.mark.parametrize("value", [5, b"alice", ["alice"], True])
def test_4_1_a_scope_value_is_a_string(value):
    with pytest.raises(InvalidTypeError, match="user_id"):
        MemoryScope(user_id=value)


LOOKALIKES = [
    "user_1", "user-1", "user1", "User_1", "USER_1", "user_", "user_11", "user_1 ", " user_1", "user_1/", "user/1",
    "user.1", "user:1", "user_1'", 'user_1"', "user%1", "user%", "%", "_", "user?1", "user*", "[user_1]", "user\\_1",
    "user_1\n", "u\u0308ser_1", "üser_1", "usеr_1", "😀", "😀😀", "张三", "张三 ", "' OR '1'='1", '"; DROP TABLE x; --',
    "null", "None", "NaN", "x" * 10_000, "x" * 10_001,
]  # fmt: skip


async def test_4_1_user_ids_that_look_alike_are_different_users():
    assert len(set(LOOKALIKES)) == len(LOOKALIKES)
    store, endpoint = FaultyStore(), ScriptedEndpoint()
    agent = remembering(memory(store, max_results=99), endpoint.client)
    for number, user in enumerate(LOOKALIKES):
        await ask(agent, f"secret {number}", user)
    for number, user in enumerate(LOOKALIKES):
        assert [t for t in texts(store, MemoryScope(user_id=user)) if t != "ok"] == [f"secret {number}"]
        found = remembered(await ask(agent, "secret", user))
        assert [text for text in found if text.startswith("secret ")] == [f"secret {number}"]


async def test_4_1_the_same_id_in_two_fields_is_two_scopes():
    store = FaultyStore()
    await ask(remembering(memory(store, State(MemoryScope(agent_id="x")))), "I like soup.")
    assert remembered(await ask(remembering(memory(store, State(MemoryScope(user_id="x")))), "soup")) == []


def test_4_1_everyone_stays_everyone_in_copies_and_pickles():
    state = State(MemoryScope(user_id="alice"), EVERYONE)
    assert copy.deepcopy(state).searched is EVERYONE
    assert pickle.loads(pickle.dumps(state)).searched is EVERYONE


# --- 4.2: what could never find anything ---


@pytest.mark.parametrize("field", FIELDS)
async def test_4_2_a_search_scope_on_a_field_that_is_never_stored_is_an_error(field):
    storage = scope_of([name for name in FIELDS if name != field])
    with pytest.raises(InvalidInputError, match=f"{field}.*nothing would be found"):
        State(storage, scope_of(FIELDS))
    agent = remembering(memory(state=lambda session: State(storage, scope_of([field]))))
    with pytest.raises(InvalidInputError, match=field):
        await ask(agent, "hi")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", ["\0", "ali\0ce", "alice\0"])
def test_4_2_ids_with_nul_are_refused(field, value):
    with pytest.raises(InvalidInputError, match="NUL"):
        MemoryScope(**{field: value})
    with pytest.raises(InvalidInputError, match="NUL"):
        MemoryRecord("text", id=value)


@pytest.mark.parametrize("value", ["\ud83d", "ali\udc00ce"])
def test_4_2_ids_with_a_lone_surrogate_are_refused(value):
    with pytest.raises(InvalidInputError, match="surrogate"):
        MemoryScope(user_id=value)


# --- the state: once per session, kept in it; its errors are raised ---


async def test_4_0_the_state_is_made_once_per_session_and_kept_in_it():
    made = []

    def initializer(session):
        made.append(session.session_id)
        return State(MemoryScope(user_id="alice"))

    agent = remembering(memory(state=initializer), ScriptedEndpoint().client)
    one, two = agent.create_session(), agent.create_session()
    for session in (one, one, two, one):
        await agent.run("hi", session=session)
    resumed = AgentSession.from_dict(one.to_dict())
    await agent.run("hi", session=resumed)
    assert made == [one.session_id, two.session_id]
    assert one.state["ChatHistoryMemoryProvider"]["state"] == State(MemoryScope(user_id="alice"))
    assert resumed.state["ChatHistoryMemoryProvider"]["state"] == State(MemoryScope(user_id="alice"))


async def test_4_0_without_a_session_the_state_is_made_each_run():
    made = []

    def initializer(session):
        made.append(session)
        return State(MemoryScope(user_id="alice"))

    store = FaultyStore()
    agent = remembering(memory(store, initializer), ScriptedEndpoint("noted").client)
    await agent.run("I like soup.")
    response = await agent.run("what about soup")
    assert len(made) == 2
    assert "I like soup." in remembered(response)  # memories need no session, only a scope


async def test_4_8_an_error_of_the_state_initializer_is_raised_and_nothing_is_stored():
    def initializer(session):
        raise KeyError("User ID not found in session state.")

    store, endpoint = FaultyStore(), ScriptedEndpoint()
    agent = remembering(memory(store, initializer), endpoint.client)
    session = agent.create_session()
    with pytest.raises(KeyError, match="User ID not found"):
        await agent.run("hi", session=session)
    assert (endpoint.requests, texts(store), "in_memory" in session.state) == ([], [], True)
    assert session.state["in_memory"] == {}
    working = remembering(memory(store, State(MemoryScope(user_id="alice"))), endpoint.client)
    await working.run("hi", session=session)  # the session is not left half made
    assert texts(store) == ["hi", "ok"]


@pytest.mark.parametrize("wrong", [None, {}, "alice", MemoryScope(user_id="alice"), State])
@pytest.mark.parametrize("when", [SearchTime.BEFORE_AI_INVOKE, SearchTime.ON_DEMAND_FUNCTION_CALLING])
async def test_4_8_a_state_of_the_wrong_type_is_an_error_that_names_the_right_one(wrong, when):
    agent = remembering(memory(state=lambda session: wrong, search_time=when))
    with pytest.raises(InvalidTypeError, match="must return a State"):
        await ask(agent, "hi")


@pytest.mark.parametrize("wrong", [None, "alice", {"user_id": "alice"}])
def test_4_1_a_storage_scope_is_a_memory_scope(wrong):
    with pytest.raises(InvalidTypeError, match="storage_scope"):
        State(wrong)
    with pytest.raises(InvalidTypeError, match="scope"):
        State(MemoryScope(user_id="alice"), wrong or "everyone")


@pytest.mark.parametrize("search", [None, MemoryScope(user_id="alice"), EVERYONE], ids=["default", "user", "everyone"])
def test_4_0_the_scopes_survive_a_stored_session(search):
    session = AgentSession()
    session.state["memory"] = {"state": State(MemoryScope(application_id="app", user_id="alice"), search)}
    assert AgentSession.from_dict(session.to_dict()).state == session.state


@pytest.mark.parametrize(
    "damage",
    [
        {"storage_scope": None},
        {"storage_scope": {"user": "alice"}},
        {"storage_scope": {"user_id": 5}},
        {"storage_scope": {"user_id": ""}},
        {"search_scope": "NOBODY"},
        {"search_scope": {"agent_id": "never stamped"}},
        {"search_scope": {}},
        {"search_scope": 5},
    ],
    ids=str,
)
def test_4_0_damaged_scopes_of_a_stored_session_are_refused(damage):
    stored = AgentSession(session_id="s").to_dict()
    good = {"type": "memlab.memory_state", "storage_scope": {"user_id": "alice"}, "search_scope": None}
    stored["state"] = {"memory": {"state": {**good, **damage}}}
    with pytest.raises(InvalidInputError, match=r"state\.memory\.state"):
        AgentSession.from_dict(stored)


# --- 4.10: errors at construction ---


def build(**changes):
    given = {
        "vector_store": InMemoryVectorStore(BagEmbedder()),
        "collection_name": "c",
        "vector_dimensions": 64,
        "state_initializer": lambda session: None,
        **changes,
    }
    return ChatHistoryMemoryProvider(**given)


@pytest.mark.parametrize("max_results", [0, -1, 2.5, "3", None, True])
def test_4_10_max_results_is_at_least_one(max_results):
    with pytest.raises(InvalidInputError, match=r"max_results.*at least 1"):
        ChatHistoryMemoryProviderOptions(max_results=max_results)


@pytest.mark.parametrize("dimensions", [0, -512, 2.5, "512", None, True])
def test_4_10_vector_dimensions_are_at_least_one(dimensions):
    with pytest.raises(InvalidInputError, match=r"vector_dimensions.*embedder\.dimensions"):
        build(vector_dimensions=dimensions)


@pytest.mark.parametrize("name", ["", "  ", None, 5])
def test_4_10_a_blank_collection_name_is_refused(name):
    with pytest.raises(InvalidInputError, match="collection_name"):
        build(collection_name=name)


@pytest.mark.parametrize("store", [None, "memories.db", BagEmbedder(), InMemoryVectorStore])
def test_4_10_a_missing_store_is_refused_with_what_to_pass(store):
    with pytest.raises(InvalidInputError, match=r"vector_store.*InMemoryVectorStore"):
        build(vector_store=store)


def test_4_10_a_store_without_an_embedder_is_refused():
    with pytest.raises(InvalidInputError, match="no embedder"):
        build(vector_store=InMemoryVectorStore())


def test_4_10_a_state_initializer_is_a_function():
    with pytest.raises(InvalidTypeError, match="state_initializer"):
        build(state_initializer=State(MemoryScope(user_id="alice")))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"search_time": "sometimes"}, "before_ai_invoke"),
        ({"rank": "best"}, "cosine"),
        ({"where": {"user_id": "bob"}}, "role and kind"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": -1}, "timeout"),
        ({"record_template": "{word}"}, r"\{text\}"),
        ({"record_template": "{"}, r"\{text\}"),
        ({"record_template": "{}"}, r"\{text\}"),
        ({"record_template": "{text.first}"}, r"\{text\}"),
        ({"where": {5: "x"}}, "role and kind"),
        ({"threshold": "0.3"}, "threshold is '0.3'; pass a number"),
        ({"threshold": True}, "threshold is True; pass a number"),
        ({"threshold": float("nan")}, "threshold"),
    ],
    ids=str,
)
def test_4_10_options_that_make_no_sense_are_refused_at_construction(options, named):
    with pytest.raises(InvalidInputError, match=named):
        ChatHistoryMemoryProviderOptions(**options)


@pytest.mark.parametrize("field", [field.name for field in fields(ChatHistoryMemoryProviderOptions)])
def test_4_10_every_option_refuses_another_type_and_says_what_to_pass(field):
    with pytest.raises((InvalidTypeError, InvalidInputError), match=f"{field} is b'x'.*(pass|must be)"):
        ChatHistoryMemoryProviderOptions(**{field: b"x"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeout": "3"}, "timeout is '3'.*a number or None"),
        ({"where": "role"}, "where is 'role'.*a dictionary"),
        ({"where": {"kind": 5}}, r"where\['kind'\] is 5.*a string"),
        ({"store_turns_as_one": "no"}, "store_turns_as_one is 'no'.*True or False"),
        ({"redactor": "***"}, r"redactor is '\*\*\*'.*a function or None"),
    ],
    ids=str,
)
def test_4_10_the_refusal_says_what_was_given_and_what_to_pass(options, said):
    with pytest.raises(InvalidTypeError, match=said):
        ChatHistoryMemoryProviderOptions(**options)


def test_4_10_numbers_of_numpy_are_numbers():
    options = ChatHistoryMemoryProviderOptions(
        max_results=np.int64(2), threshold=np.float32(0.5), exclude_loaded=np.bool_(True)
    )
    assert (options.max_results, options.threshold, bool(options.exclude_loaded)) == (2, 0.5, True)


@pytest.mark.parametrize("options", [{}, {"max_results": 3}, "cosine", 3, ChatHistoryMemoryProviderOptions], ids=str)
def test_4_10_options_of_another_type_are_refused(options):
    with pytest.raises(InvalidTypeError, match=r"options is .*ChatHistoryMemoryProviderOptions\(max_results=…\)"):
        build(options=options)


def test_4_10_the_state_key_is_the_class_name_by_default():
    class Diary(ChatHistoryMemoryProvider):
        pass

    assert build().source_id == "ChatHistoryMemoryProvider"
    assert Diary(InMemoryVectorStore(BagEmbedder()), "c", 64, lambda s: None).source_id == "Diary"
    assert build(options=ChatHistoryMemoryProviderOptions(state_key="mine")).source_id == "mine"


async def test_4_10_two_memories_of_one_key_are_refused_and_with_two_keys_have_two_states():
    with pytest.raises(InvalidInputError, match="ChatHistoryMemoryProvider"):
        ScriptedEndpoint().agent(context_providers=[memory(), memory()])
    alice, bob = State(MemoryScope(user_id="alice")), State(MemoryScope(user_id="bob"))
    both = [memory(state=alice, state_key="a"), memory(state=bob, state_key="b")]
    agent = ScriptedEndpoint().agent(context_providers=both)
    session = agent.create_session()
    await agent.run("hi", session=session)
    assert (session.state["a"]["state"], session.state["b"]["state"]) == (alice, bob)


async def test_4_10_dimensions_of_another_embedder_are_refused_at_the_first_run():
    store = InMemoryVectorStore(BagEmbedder())
    state = State(MemoryScope(user_id="alice"))
    provider = ChatHistoryMemoryProvider(store, COLLECTION, 1536, lambda session: state)
    with pytest.raises(InvalidInputError, match=r"1536.*bag-of-words makes 64-d"):
        await ask(remembering(provider), "hi")


# --- the story ---


@pytest.mark.parametrize(
    ("fact", "question", "name"),
    [
        ("My name is Alice.", "What is my name?", "Alice"),
        ("我叫张三", "我叫什么名字？", "张三"),
        ("Меня зовут Анна.", "Как меня зовут?", "Анна"),
    ],
)
async def test_one_user_is_known_in_another_session_and_another_user_is_not(fact, question, name):
    store = InMemoryVectorStore(lab().embedder)
    agent = remembering(memory(store), instructions="Answer briefly.")
    await ask(agent, fact, "one")
    assert name in (await ask(agent, question, "one")).text
    other = await ask(agent, question, "two")
    assert name not in other.text
    assert remembered(other) == []
