"""A request read into the parts the skills need: question, remembered lines, facts, tools, what was called."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from memlab.offline.chat_model import corrections, wording
from memlab.offline.chat_model.book import FactBook
from memlab.offline.chat_model.facts import Fact, extract
from memlab.offline.chat_model.text import language, trim


class Line(NamedTuple):
    """One text and who said it: user, assistant, system, or "any" (a remembered line without a role)."""

    speaker: str
    text: str


class Tool(NamedTuple):
    """A function the caller offers."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Name and description, lower case, to look for key words in."""
        return f"{self.name} {self.description}".lower()

    @property
    def required(self) -> list[str]:
        """Names of the parameters that must be filled."""
        return [name for name in self.parameters.get("required") or () if isinstance(name, str)]

    @property
    def properties(self) -> dict[str, Any]:
        """Parameter name -> JSON schema."""
        properties = self.parameters.get("properties")
        return dict(properties) if isinstance(properties, Mapping) else {}


class Exchange(NamedTuple):
    """A tool call of this turn and its result (None while there is none)."""

    name: str
    arguments: Mapping[str, Any]
    result: str | None


def text_of(message: Any) -> str:
    """A message's text: a string, the text parts of a list, or "" (null content, other parts)."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


_PREFIX = re.compile(
    r"\s*(?:\[(?P<when>\d{4}-\d\d-\d\d[^\]]{0,30}?)?[ ,]*(?P<role>user|assistant|system)?[^\]]{0,20}\]\s*)?"
    r"(?:(?P<speaker>user|assistant|用户|助手|пользователь|ассистент)\s*[:：]\s*)?",
    re.I,
)
_SPEAKERS = {"用户": "user", "пользователь": "user", "助手": "assistant", "ассистент": "assistant"}


def _is_correction(text: str) -> bool:
    """Whether a text begins by saying that something before it was wrong."""
    return corrections.marked(text, language(text) or "en") or _ALSO_CORRECTS.match(text) is not None


_ALSO_CORRECTS = re.compile(r"\W*(?:改名|forget (?:that|it)|забудь|现在不)", re.I)


def is_memory_block(text: str) -> bool:
    """Whether a user message is a memory block: it begins with a Markdown heading."""
    return text.lstrip()[:1] == "#"


def memory_lines(text: str) -> list[Line]:
    """The remembered lines of a block, as it lists them; dated lines by date, corrections after the rest."""
    lines = [_memory_line(line) for line in text.split("\n") if line.strip() and not is_memory_block(line)]
    lines.sort(key=lambda item: (item[0], _is_correction(item[1].text)))
    return [line for _, line in lines]


def _memory_line(text: str) -> tuple[str, Line]:
    """(date or "", line) from `[2026-01-05 user] I like tea`, `user: I like tea` or `"I like tea"`."""
    text = _unquote(text)
    match = _PREFIX.match(text)
    if not match or not match.group().strip():
        return "", Line("any", text)
    speaker = (match["speaker"] or match["role"] or "any").lower()
    return match["when"] or "", Line(_SPEAKERS.get(speaker, speaker), _unquote(text[match.end() :]))


_FORGED = re.compile(
    r"\n\s*(?:#{1,6}\s|[\[(]?\s*(?:[\d:T ,-]*\s)?(?:user|assistant|system|developer|tool|用户|助手|系统|пользователь|ассистент|система)\s*[\])]?\s*[:：\]])",  # noqa: E501
    re.I,
)


def own_words(text: str) -> str:
    """One remembered text up to a line that looks like a heading or a role: nobody says "user:" of himself.

    A quoted memory holds its line breaks inside its quotes. Its lines are no memories of their own, so a
    "user: my name is Mallory" in the middle of a letter is the letter's, not the user's.
    """
    match = _FORGED.search(text)
    return text[: match.start()] if match else text


def _unquote(text: str) -> str:
    """A JSON string as the text it stands for."""
    text = text.strip()
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        try:
            return str(json.loads(text))
        except ValueError:
            return text
    return text


@dataclass(frozen=True)
class Conversation:
    """What the skills see. Built once a request by `read`."""

    request: Mapping[str, Any]
    question: str
    memories: tuple[Line, ...]
    history: tuple[Line, ...]
    tools: tuple[Tool, ...]
    exchanges: tuple[Exchange, ...]
    past_calls: tuple[Exchange, ...]

    @cached_property
    def lang(self) -> str:
        """The language of the question, else of the conversation, else English."""
        texts = [self.question, *(line.text for line in reversed(self.history) if line.speaker == "user")]
        return next((found for text in texts[:20] if (found := language(text))), "en")

    @cached_property
    def facts(self) -> FactBook:
        """Everything known about the user: remembered lines first, then the conversation, so that it wins."""
        book = FactBook()
        for line in self.memories:
            for fact in extract(own_words(line.text), line.speaker):
                book.add(fact)
        asked = ""
        for line in self.history:
            if line.speaker == "user":
                book.next_turn()
            store = book.correct if _is_correction(line.text) else book.add
            for fact in extract(line.text, line.speaker) or _bare_answer(line, asked):
                store(fact)
            asked = line.text if line.speaker == "assistant" else ""
        return book

    @cached_property
    def new_facts(self) -> tuple[Fact, ...]:
        """What the question itself states."""
        previous = [line.text for line in self.history[:-1] if line.speaker == "assistant"]
        return extract(self.question) or tuple(_bare_answer(Line("user", self.question), (previous or [""])[-1]))

    @cached_property
    def everything(self) -> tuple[Line, ...]:
        """All lines in view, oldest first."""
        return (*self.memories, *self.history)

    @property
    def seed(self) -> int:
        """The request's `seed`, 0 without one."""
        seed = self.request.get("seed")
        return seed if isinstance(seed, int) else 0


def _bare_answer(line: Line, asked: str) -> list[Fact]:
    """ "Anna" alone, right after the assistant asked for the name, is the name."""
    if line.speaker != "user" or not asked or len(line.text) > 30:
        return []
    lang = next((lang for lang, words in wording.UNKNOWN.items() if words["name"] in asked), None)
    value = trim(line.text)
    return [Fact("name", value, say=wording.name_saying(lang), lang=lang)] if lang and wording.bare_name(value) else []


def read(request: Mapping[str, Any]) -> Conversation:
    """Split a Chat Completions body into a `Conversation`. Never changes it."""
    messages = [m for m in request.get("messages") or [] if isinstance(m, Mapping)]
    last_user = max((i for i, m in enumerate(messages) if m.get("role") == "user"), default=-1)
    memories: list[Line] = []
    history: list[Line] = []
    for message in messages:
        text = text_of(message)
        role = message.get("role")
        if role == "user" and is_memory_block(text):
            memories += memory_lines(text)
        elif role in ("user", "assistant", "system", "developer") and text:
            history.append(Line("system" if role == "developer" else str(role), text))
    exchanges = _exchanges(messages[last_user + 1 :])
    memories += [line for ex in exchanges if ex.result for line in memory_lines(ex.result)]
    return Conversation(
        request, _question(history), tuple(memories), tuple(history), _tools(request), exchanges,
        _exchanges(messages[: last_user + 1]),
    )  # fmt: skip


def _question(history: list[Line]) -> str:
    """The last user text; of several in a row, the last that isn't a mere standing instruction."""
    texts: list[str] = []
    for line in reversed(history):
        if line.speaker == "assistant" and texts:
            break
        if line.speaker == "user":
            texts.append(line.text)
    return next((text for text in texts if not wording.is_instruction(text)), texts[0] if texts else "")


def _tools(request: Mapping[str, Any]) -> tuple[Tool, ...]:
    """The function tools on offer; none under `tool_choice: "none"`."""
    if request.get("tool_choice") == "none":
        return ()
    functions = [t.get("function") for t in request.get("tools") or [] if isinstance(t, Mapping)]
    return tuple(
        Tool(str(f.get("name", "")), str(f.get("description") or ""), f.get("parameters") or {})
        for f in functions
        if isinstance(f, Mapping)
    )


def _exchanges(messages: list[Mapping[str, Any]]) -> tuple[Exchange, ...]:
    """Tool calls with their results, matched by id."""
    results = {m.get("tool_call_id"): text_of(m) for m in messages if m.get("role") == "tool"}
    calls = [c for m in messages for c in m.get("tool_calls") or () if isinstance(c, Mapping)]
    return tuple(_exchange(call, results) for call in calls if isinstance(call.get("function"), Mapping))


def _exchange(call: Mapping[str, Any], results: Mapping[Any, str]) -> Exchange:
    function = call["function"]
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except (TypeError, ValueError):
        arguments = {}
    arguments = arguments if isinstance(arguments, dict) else {}
    return Exchange(str(function.get("name", "")), arguments, results.get(call.get("id")))
