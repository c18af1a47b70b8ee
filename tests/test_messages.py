"""Messages, their wire format, and what is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import InvalidInputError, InvalidTypeError, Message, MessageSource, Text, ToolCall, ToolResult, UsageDetails
from memlab.messages import ROLES, as_messages, clean_text, to_wire
from tests import support  # noqa: F401 - sets the profile of hypothesis

any_text = st.text(alphabet=st.characters(exclude_categories=[]))  # lone surrogates included
clean = st.text()
contents = st.lists(
    st.one_of(
        st.builds(Text, clean),
        st.builds(ToolCall, clean, clean, clean),
        st.builds(ToolResult, clean, clean, st.booleans()),
    ),
    max_size=4,
)
messages = st.builds(
    Message,
    st.sampled_from(ROLES),
    contents,
    author_name=st.none() | clean.filter(bool),
    message_id=st.none() | clean.filter(bool),
    additional_properties=st.dictionaries(clean, st.integers() | clean | st.none()),
    source=st.builds(MessageSource, st.sampled_from(["external", "history", "provider", "model"]), st.none() | clean),
    repaired=st.booleans(),
)


def test_contents_may_be_a_string_or_a_list():
    assert Message("user", "hi") == Message("user", ["hi"]) == Message("user", [Text("hi")])
    assert Message("user").contents == []
    assert Message("user", ["one", "two"]).text == "one two"


@pytest.mark.parametrize(
    "contents", [5, b"bytes", [None], {"role": "user", "content": "hi"}, Text(5), [ToolCall("1", None)]]
)
def test_contents_of_another_type_are_refused(contents):
    with pytest.raises(InvalidTypeError):
        Message("user", contents)


def test_a_single_content_dictionary_is_one_content():
    assert Message("user", {"type": "text", "text": "hi"}).text == "hi"


@pytest.mark.parametrize(
    ("field", "value", "remedy"),
    [
        ("author_name", 5, "pass a string or None"),
        ("author_name", b"Bob", "pass a string or None"),
        ("message_id", 5, "pass a string or None"),
        ("additional_properties", "abc", "pass a dictionary or None"),
        ("additional_properties", [1], "pass a dictionary or None"),
        ("source", "history", "pass a MessageSource or None"),
    ],
)
def test_a_field_of_another_type_is_refused_by_name(field, value, remedy):
    with pytest.raises(InvalidTypeError, match=f"{field} is {re.escape(repr(value))}.*{remedy}"):
        Message("user", "hi", **{field: value})


@pytest.mark.parametrize("kind", ["memory", "", None, 5])
def test_an_unknown_kind_of_source_is_refused_by_name(kind):
    with pytest.raises(InvalidInputError, match=f"{kind!r}.*external, history"):
        MessageSource(kind)


def test_an_unknown_role_is_refused_by_name():
    with pytest.raises(InvalidInputError, match=r"'bot'.*assistant"):
        Message("bot", "hi")


@given(any_text)
def test_lone_surrogates_become_the_replacement_character(text):
    message = Message("user", text)
    pairs_joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert message.text == re.sub("[\ud800-\udfff]", "\ufffd", pairs_joined)
    assert message.repaired == (message.text != text)
    message.text.encode("utf-8")
    assert clean_text(message.text) == message.text


def test_surrogates_are_repaired_in_names_and_tool_results_too():
    message = Message("tool", ToolResult("1", "menu \ud83d"), author_name="Bob\udc00")
    assert (message.tool_results[0].result, message.author_name, message.repaired) == ("menu \ufffd", "Bob\ufffd", True)
    assert not Message("user", "😀 我叫张三").repaired


@given(messages)
def test_a_message_survives_its_dictionary(message):
    assert Message.from_dict(message.to_dict()) == message


def test_a_dictionary_shares_nothing_with_its_message():
    message = Message("user", "hi", additional_properties={"a": 1})
    message.to_dict()["additional_properties"]["a"] = 2
    assert message.additional_properties == {"a": 1}


@pytest.mark.parametrize(
    ("stored", "named"),
    [
        ("hi", "role"),
        ({"contents": []}, "role"),
        ({"role": "bot"}, "bot"),
        ({"role": "user", "contents": [{"type": "text"}]}, "text"),
        ({"role": "user", "contents": ["hi"], "source": {"where": "x"}}, "source"),
        ({"role": "user", "contents": ["hi"], "source": "external"}, "source"),
    ],
)
def test_a_damaged_dictionary_is_refused_with_what_is_wrong(stored, named):
    with pytest.raises(InvalidInputError, match=named):
        Message.from_dict(stored)


def test_a_copy_shares_no_mutable_part():
    original = Message("user", "hi", additional_properties={"a": 1})
    twin = original.copy(role="assistant")
    twin.contents.append(Text("there"))
    twin.additional_properties["a"] = 2
    assert (original.role, original.text, original.additional_properties) == ("user", "hi", {"a": 1})


def test_as_messages_takes_what_run_takes():
    message = Message("assistant", "hi")
    assert as_messages(None) == []
    assert as_messages("hi") == as_messages(Text("hi")) == [Message("user", "hi")]
    assert as_messages([message, "there"]) == [message, Message("user", "there")]
    assert as_messages([message])[0] is message


@pytest.mark.parametrize("single", [True, False], ids=["alone", "in a list"])
@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (5, "a string, a Message, or a list"),
        (b"hi", "a string, a Message, or a list"),
        ({"role": "user", "content": "hi"}, r'Message\("user", "…"\)'),
        ({"role": "assistant", "content": "hi"}, r'Message\("assistant", "…"\)'),
        (Message("user", "hi").to_dict(), "Message.from_dict"),
    ],
)
def test_as_messages_says_what_to_pass_instead(given, remedy, single):
    with pytest.raises(InvalidTypeError, match=remedy):
        as_messages(given if single else ["first", given])


def test_the_wire_format():
    call, result = ToolCall("c1", "GetMenu"), ToolResult("c1", "番茄炒蛋")
    assert to_wire([
        Message("system", "Be brief."),
        Message("user", "hi", author_name="张三"),
        Message("user", "hi", author_name="two words"),
        Message("assistant", call, author_name="cook"),
        Message("assistant", ["Let me see.", call]),
        Message("tool", [result, ToolResult("c2", "Error: no", is_error=True)]),
    ]) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi", "name": "张三"},
        {"role": "user", "content": "hi"},  # the API would refuse this name
        {"role": "assistant", "content": None, "tool_calls": [_wire_call()]},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [_wire_call()]},
        {"role": "tool", "tool_call_id": "c1", "content": "番茄炒蛋"},
        {"role": "tool", "tool_call_id": "c2", "content": "Error: no"},
    ]  # fmt: skip


def _wire_call():
    return {"id": "c1", "type": "function", "function": {"name": "GetMenu", "arguments": "{}"}}


def test_usage_adds_up_and_remembers_estimates():
    counted = UsageDetails.of(11, 4)
    total = counted + UsageDetails.of(20, 6, estimated=True)
    assert total == {"input_token_count": 31, "output_token_count": 10, "total_token_count": 41}
    assert (counted.estimated, total.estimated) == (False, True)
