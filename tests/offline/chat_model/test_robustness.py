"""Purity, any text at all, and no runaway pattern."""

import copy
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.offline.chat_model import Turn, respond

WORDS = [
    "我叫",
    "我喜欢",
    "不",
    "吗",
    "？",
    "，",
    "。",
    "“",
    "”",
    "my",
    "name",
    "is",
    "I'm",
    "like",
    "and",
    "not",
    "?",
    ",",
    ".",
    '"',
    "'",
    "«меня",
    "зовут»",
    "я",
    "люблю",
    "не",
    "а",
    "и",
    "ли",
    "#",
    "-",
    ":",
    "×",
    "1",
    "\n",
    "�",
    "🙂",
    "他说",
    "said",
    "if",
    "if",
]


def test_same_request_same_turn_and_nothing_changed():
    request = {
        "messages": [
            {"role": "user", "content": "I'm Anna"},
            {"role": "user", "content": [{"type": "text", "text": "Tell me a joke"}]},
        ],
        "tools": [
            {"type": "function", "function": {"name": "Search", "parameters": {"type": "object", "properties": {}}}}
        ],
        "seed": 7,
    }
    before = copy.deepcopy(request)
    first = respond(request)
    respond({"messages": [{"role": "user", "content": "My name is Zed"}]})
    assert respond(request) == first
    assert request == before


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["user", "assistant", "system", "developer", "tool", "function"]),
            st.text(max_size=60) | st.none(),
        )
    )
)
def test_any_text_gets_a_turn(messages):
    turn = respond({"messages": [{"role": role, "content": content} for role, content in messages]})
    assert isinstance(turn, Turn)
    assert turn.text


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=30), st.sampled_from(["", " "]))
def test_any_mix_of_key_words_gets_a_turn(words, gap):
    text = gap.join(words)
    assert respond({"messages": [{"role": "user", "content": text}, {"role": "user", "content": "## M\n" + text}]}).text


BIG = {
    "letters": "a" * 200_000, "lines": "\n" * 200_000, "spaces": " " * 200_000, "quotes": '"' * 200_000, "apostrophes": "'" * 200_000, "my": "my " * 66_000,  # noqa: E501
    "chinese": "我" * 66_000, "statements": "I like tea. " * 16_000, "russian": "я люблю, " * 20_000, "marks": "×1" * 90_000, "long sentences": ("我的" * 140 + "。") * 600,  # noqa: E501
    "questions": "what is my " * 18_000 + "?", "greetings": "hi, " * 50_000, "named": "我叫和" * 60_000,
}  # fmt: skip


@pytest.mark.parametrize("name", BIG)
def test_no_runaway_pattern(name):
    start = time.perf_counter()
    respond({"messages": [{"role": "user", "content": BIG[name]}]})
    respond({"messages": [{"role": "user", "content": "## M\n" + BIG[name]}, {"role": "user", "content": "who am I?"}]})
    assert (
        time.perf_counter() - start < 10
    )  # well under a second each on an idle machine; minutes when a pattern runs away


def test_a_long_history():
    messages = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": f"Message number {i} about nothing."}
        for i in range(3000)
    ]
    messages[10] = {"role": "user", "content": "My name is Anna"}
    assert (
        respond({"messages": [*messages, {"role": "user", "content": "What's my name?"}]}).text == "Your name is Anna."
    )


def test_odd_requests():
    assert respond({}).text
    assert respond(
        {"messages": [None, "x", {"role": "user"}], "tools": [None, {"type": "function"}], "tool_choice": "auto"}
    ).text
    broken = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "x", "arguments": "{oops"}}, None],
    }
    assert respond(
        {
            "messages": [
                {"role": "user", "content": "hi"},
                broken,
                {"role": "tool", "tool_call_id": "1", "content": "done"},
            ]
        }
    ).text
