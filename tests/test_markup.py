"""What a notebook shows: every part of a run, escaped, shortened, in well-formed HTML without scripts or secrets."""

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from memlab import AgentSession, InMemoryHistoryProvider, Message, MessageCountReducer, UsageDetails, tool
from memlab.markup import MAX_ROWS, shorten
from memlab.messages import MessageSource, Text, ToolCall, ToolResult
from memlab.response import AgentResponse
from memlab.tools import record_event
from memlab.trace import Dropped, Failure, ModelCall, Search, ToolRun, Trace
from tests.support import ScriptedEndpoint, call

EVIL = '<script>alert("x")</script>&amp;'


class Reader(HTMLParser):
    """Reads HTML as a browser does: its texts, its tags with styles; fails where they are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        self.open.append(tag)
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((data, self.tags[-1][1].get("style", "")))

    @property
    def text(self) -> str:
        return "\n".join(text for text, _ in self.texts)

    def style_of(self, part: str) -> str:
        return next(style for text, style in self.texts if part in text)


def read(shown: Any) -> Reader:
    html = shown._repr_html_()
    assert html == html.encode("utf-8").decode()  # no lone surrogate: the notebook could not be saved
    reader = Reader(html)
    assert {name for name, _ in reader.tags} <= {
        *("div", "b", "details", "summary", "table", "thead", "tbody", "tr", "th", "td")
    }
    assert all(set(attributes) <= {"style", "open"} for _, attributes in reader.tags)
    return reader


def search(count: int = 4, **options: Any) -> Search:
    scores = np.linspace(0.1, 0.9, count, dtype=np.float32)
    candidates = [Message("user", f"memory {i}") for i in range(count)]
    kept = np.argsort(-scores)[:2]
    return Search("memories", "what?", candidates, scores, kept, **{"top_k": 2, "threshold": 0.3, **options})


def message(text: str, kind: str = "external", role: str = "user") -> Message:
    return Message(role, text, source=MessageSource(kind, "me"))


# --- a response ---


async def test_a_response_shows_its_answer_its_cost_and_what_was_sent_by_part() -> None:
    @tool(name="GetMenu")
    def menu() -> str:
        record_event("look", "looked at the menu")
        return "soup"

    endpoint = ScriptedEndpoint("one", call("GetMenu"), "There is soup.")
    history = InMemoryHistoryProvider(reducer=MessageCountReducer(1))
    agent = endpoint.agent(instructions="Be brief.", tools=menu, context_providers=[history])
    session = agent.create_session()
    await agent.run("hello", session=session)
    response = await agent.run("what is there?", session=session)
    reader = read(response)
    assert reader.texts[0][0] == "There is soup."
    assert "20 tokens in, 4 out" in reader.text
    assert "estimated" not in reader.text
    for part in ("instructions", "history", "input", "tool loop", "tools"):
        assert part in [text for text, _ in reader.texts]
    assert "Sent 1 of 2: 3 messages, 10 tokens in, 2 out" in reader.text
    assert "assistant: calls GetMenu({})" in reader.text
    assert "look: looked at the menu" in reader.text
    assert "Dropped by in_memory: 1 message, MessageCountReducer" in reader.text
    assert ("details", {}) in reader.tags  # folded


def test_the_tokens_of_a_part_add_up() -> None:
    sent = ModelCall([message(f"word {i}", "history") for i in range(3)] + [message("now")], model="classroom-8k")
    cells = [text for text, _ in read(Trace(calls=[sent])).texts]
    single = [int(cells[i + 1]) for i, text in enumerate(cells) if text == "history"]
    assert len(single) == 3
    assert int(cells[cells.index("history, all 3") + 1]) == sum(single) == sent.tokens_by_part()["history"]


def test_an_estimate_is_marked_and_a_missing_usage_is_said() -> None:
    counted = UsageDetails.of(1234, 5, estimated=True)
    assert "1,234 tokens in, 5 out (estimated)" in read(AgentResponse([message("hi")], counted)).text
    assert "no usage reported" in read(AgentResponse([message("hi")])).text


def test_an_answer_without_text_says_so() -> None:
    assert "(no text)" in read(AgentResponse([])).text


def test_failures_stand_in_red_and_so_do_errors_of_tools() -> None:
    failed = ToolRun("GetMenu", "{}", "Error: closed", True, 0.0)
    trace = Trace(failures=[Failure("memory.search", "ConnectionError")], tool_runs=[failed], notes=["it stands aside"])
    reader = read(trace)
    assert "--jp-error-color1" in reader.style_of("memory.search failed with ConnectionError")
    assert "--jp-error-color1" in reader.style_of("Error: closed")
    assert "--jp-error-color1" not in reader.style_of("it stands aside")


# --- searches ---


def test_a_search_shows_every_candidate_best_first_and_why() -> None:
    cells = [text for text, _ in read(search()).texts]
    assert "Search in memories: kept 2 of 4 (top 2, threshold 0.3, cosine)" in cells
    assert [text for text in cells if text.startswith("memory ")] == [f"memory {i}" for i in (3, 2, 1, 0)]
    assert [text for text in cells if text[0] in "✓✗"] == [
        "✓ kept",
        "✓ kept",
        "✗ beyond top 2",
        "✗ below the threshold 0.3",
    ]
    assert cells[cells.index("memory 3") - 3] == "0.900"


def test_of_many_candidates_the_best_are_shown() -> None:
    cells = [text for text, _ in read(search(40)).texts]
    assert [text for text in cells if text.startswith("memory ")] == [f"memory {i}" for i in range(39, 27, -1)]
    assert "28 lower ones are not shown" in cells


def test_an_empty_search_says_so() -> None:
    nothing = Search("memories", "", [], np.empty(0), np.empty(0, dtype=np.int64), top_k=3)
    assert "There was nothing to search." in read(nothing).text
    assert "(none)" in read(nothing).text


def test_of_a_long_history_the_last_messages_are_shown() -> None:
    sent = ModelCall([message(f"turn {i}.", "history") for i in range(50)], model="classroom-8k")
    text = read(Trace(calls=[sent])).text
    assert "turn 49." in text
    assert "turn 38." in text
    assert "turn 37." not in text
    assert f"{50 - MAX_ROWS} earlier ones are not shown" in text


# --- sessions ---


def test_a_session_shows_ids_keys_and_counts_but_no_values() -> None:
    session = AgentSession(session_id="lesson", service_session_id="resp_1")
    session.state |= {
        "user_id": "alice",
        "api_key": "sk-secret",
        "in_memory": {"messages": [message("a"), message("b")]},
    }
    session.state |= {"memory": {"state": {"user_id": "alice"}}, "audit": {"messages": []}, "tracking": {}}
    text = read(session).text
    for expected in ("lesson", "resp_1", "user_id, api_key", "in_memory: 2 messages", "audit: 0 messages"):
        assert expected in text
    assert "memory: state" in text
    assert "tracking: nothing" in text
    assert "alice" not in text
    assert "sk-secret" not in text


def test_an_empty_session_says_so() -> None:
    text = read(AgentSession()).text
    assert "nothing of your own" in text
    assert "none has kept anything yet" in text
    assert "none: the history is kept here" in text


# --- texts ---


def everywhere(text: str) -> list[Any]:
    """Objects that hold `text` wherever a text may stand."""
    contents = [Text(text), ToolCall("1", text, text)]
    sent = ModelCall(
        [Message("assistant", contents), Message("tool", [ToolResult("1", text)])],
        [{"type": "function", "function": {"name": text, "description": text, "parameters": {}}}],
    )
    for each in sent.messages:
        each.source = MessageSource("model", text)
    found = Search(text, text, [Message("user", text)], np.ones(1), np.zeros(1, dtype=int), 1, rank=text)
    run = ToolRun(text, text, text, False, 0.0)
    parts = [found], [Dropped(text, [message(text)], text)], [sent], [run], [Failure(text, text)], [text]
    session = AgentSession(session_id="s")
    session.state |= {text: 1, text + "2": {"messages": []}, text + "3": {text: text}}
    return [AgentResponse([Message("assistant", text)], trace=Trace(*parts)), session, found]


@pytest.mark.parametrize("shown", everywhere(EVIL), ids=lambda shown: type(shown).__name__)
def test_every_text_is_escaped(shown: Any) -> None:
    assert EVIL in read(shown).text  # and `read` allows no tag that a text brought in


@pytest.mark.parametrize("shown", everywhere("a\udfffb"), ids=lambda shown: type(shown).__name__)
def test_lone_surrogates_do_not_keep_a_notebook_from_being_saved(shown: Any) -> None:
    assert "a\ufffdb" in read(shown).text


def test_long_texts_are_shortened() -> None:
    for shown in everywhere("word " * 30_000):
        assert len(shown._repr_html_()) < 100_000
    assert read(AgentResponse([message("x" * 9999, role="assistant")])).texts[0][0] == "x" * 3999 + "…"
    assert "x" * 319 + "…" in read(Trace(calls=[ModelCall([message("x" * 9999)])])).text
    assert shorten("ab\n cd", 10) == "ab cd"
    assert shorten("ab\ncd", 10, lines=True) == "ab\ncd"
    assert shorten("abcdef", 4) == "abc…"


def test_the_colours_follow_the_theme() -> None:
    html = Trace(failures=[Failure("a", "b")], searches=[search()])._repr_html_()
    assert html.count("color: #") == 0  # each colour is a variable of the theme with a fallback
    assert "var(--jp-content-font-color1, inherit)" in html


def test_plain_representations_stay_on_one_line() -> None:
    trace = Trace(searches=[search(1000)], notes=["x"])
    assert repr(trace) == "Trace(1 searches, 1 notes)"
    assert repr(Trace()) == "Trace(empty)"
    assert repr(trace.searches[0]) == "Search('memories', 'what?', kept 2 of 1000)"
