"""What a notebook shows for a response, a session, a trace and a search: HTML without scripts.

Colours are those of the JupyterLab theme, with fallbacks for other places. Every text is escaped and long ones are
shortened. Of a session's own state only the keys are shown: a value may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from memlab import tokens
from memlab.messages import Message, ToolCall, ToolResult, UsageDetails, clean_text, to_wire

if TYPE_CHECKING:
    from memlab.response import AgentResponse
    from memlab.session import AgentSession
    from memlab.trace import Dropped, ModelCall, Search, ToolRun, Trace

MAX_ROWS = 12  # more is no longer read from the last row of a classroom
MAX_LETTERS = 4000  # of an answer
MAX_TEXT = 160  # of any other text

_RED = "color: var(--jp-error-color1, #d32f2f); font-weight: bold;"
_GREEN = "color: var(--jp-success-color1, #2e7d32); font-weight: bold;"
_QUIET = "color: var(--jp-content-font-color2, inherit);"
_BOLD = "font-weight: bold; white-space: nowrap;"
_SHORT = "white-space: nowrap;"
_LINE = "1px solid var(--jp-border-color1, #8888)"
_CARD = (
    f"border: {_LINE}; border-left: 4px solid var(--jp-brand-color1, #1976d2); border-radius: 4px; padding: 8px 14px; "
    "margin: 4px 0; max-width: 72em; line-height: 1.5; color: var(--jp-content-font-color1, inherit); "
    "font-family: var(--jp-content-font-family, sans-serif); font-size: var(--jp-content-font-size1, 14px);"
)
_CELL = (
    "text-align: left; vertical-align: top; padding: 2px 14px 2px 0; white-space: pre-wrap; border: 0; "
    f"border-bottom: {_LINE};"
)
_TABLE = "border-collapse: collapse; table-layout: auto; margin: 4px 0 10px; font-size: inherit; color: inherit;"

Cell = tuple[Any, str]  # what stands in it, and its style
PartOf = Callable[[Message], str]  # `memlab.trace.part_of`, which stands above this module


def response_html(response: AgentResponse, part_of: PartOf) -> str:
    """The answer, its cost, and the trace of the run."""
    answer = _tag("div", response.text, "font-size: 1.25em; white-space: pre-wrap;")
    if not response.text:
        answer = _tag("div", "(no text)", _QUIET)
    return _card(answer, _tag("div", _usage(response.usage_details), _QUIET), *_trace_parts(response.trace, part_of))


def trace_html(trace: Trace, part_of: PartOf) -> str:
    """What a run sent, searched, called and dropped, and what failed."""
    counts = f"{_count(len(trace.calls), 'request')}, {_count(len(trace.searches), 'search', 'searches')}"
    return _card(_tag("b", f"Trace: {counts}"), *_trace_parts(trace, part_of))


def search_html(search: Search) -> str:
    """One search with every candidate."""
    return _card(*_search_parts(search))


def session_html(session: AgentSession) -> str:
    """A session's ids, the keys of its state, and how many messages each provider keeps."""
    state = {key: value for key, value in session.state.items() if not isinstance(value, Mapping)}
    providers = {key: value for key, value in session.state.items() if isinstance(value, Mapping)}
    kept = [f"{key}: {_kept(value)}" for key, value in providers.items()]
    rows = [
        ("session_id", session.session_id),
        ("service_session_id", session.service_session_id or "none: the history is kept here"),
        ("state", ", ".join(state) or "nothing of your own"),
        ("providers", "\n".join(kept) or "none has kept anything yet"),
    ]
    return _card(_tag("b", "Session"), _table([], [[(name, _QUIET), (value, "")] for name, value in rows]))


def shorten(text: str, limit: int = MAX_TEXT, lines: bool = False) -> str:
    """`text` cut to `limit` letters, on one line unless `lines`.

    >>> shorten("I can't eat\\nspicy food", 14)
    "I can't eat s…"
    """
    clean = clean_text(text) if lines else " ".join(clean_text(text).split())
    return clean if len(clean) <= limit else clean[: limit - 1].rstrip() + "…"


# --- the parts of a trace ---


def _trace_parts(trace: Trace, part_of: PartOf) -> list[str]:
    failures = [f"✗ {failure.where} failed with {failure.error}; the run went on" for failure in trace.failures]
    return [
        *[_tag("div", text, _RED) for text in failures],
        *[_tag("div", note, _QUIET) for note in trace.notes],
        *[_call(call, number, len(trace.calls), part_of) for number, call in enumerate(trace.calls, start=1)],
        *[part for search in trace.searches for part in _search_parts(search)],
        *([_tools(trace.tool_runs)] if trace.tool_runs else []),
        *[_dropped(dropped) for dropped in trace.dropped],
    ]


def _call(call: ModelCall, number: int, total: int, part_of: PartOf) -> str:
    which = f" {number} of {total}" if total > 1 else ""
    title = f"Sent{which}: {_count(len(call.messages), 'message')}, {_usage(call.usage)}"
    groups: dict[str, list[Message]] = {}
    for message in call.messages:
        groups.setdefault(part_of(message), []).append(message)
    rows = [
        row for part, count in call.tokens_by_part().items() for row in _sent(call, part, groups.get(part, []), count)
    ]
    return _details(title, _table(["part", "tokens ≈", "what was sent"], rows))


def _sent(call: ModelCall, part: str, messages: Sequence[Message], count: int) -> list[list[Cell]]:
    """The rows of one part of a request: its last messages, and their sum where there are several."""
    names = ", ".join(tool["function"]["name"] for tool in call.tools) if part == "tools" else ""
    rows: list[list[Cell]] = [[(part, _SHORT), (count, ""), (names, "")]] if names else []
    rows += [[(part, _SHORT), (_tokens_of(m, call.model), ""), (f"{m.role}: {_shown(m)}", "")] for m in _last(messages)]
    if len(messages) > 1:
        hidden = len(messages) - MAX_ROWS
        note = f"{hidden} earlier ones are not shown" if hidden > 0 else ""
        rows.append([(f"{part}, all {len(messages)}", _BOLD), (count, _BOLD), (note, _QUIET)])
    return rows


def _dropped(dropped: Dropped) -> str:
    title = f"Dropped by {dropped.source_id}: {_count(len(dropped.messages), 'message')}, {dropped.why}"
    return _details(title, _table([], [[(m.role, _QUIET), (_shown(m), "")] for m in _last(dropped.messages)]))


def _search_parts(search: Search) -> list[str]:
    kept = search.kept.tolist()
    rest = sorted(set(range(len(search.scores))) - set(kept), key=lambda i: -search.scores[i])
    order = [*kept, *rest]
    limit = "" if search.threshold is None else f", threshold {search.threshold:g}"
    title = f"Search in {search.source_id}: kept {len(kept)} of {len(order)} (top {search.top_k}{limit}, {search.rank})"
    rows = [_candidate(search, i, i in kept) for i in order[:MAX_ROWS]]
    more = len(order) - MAX_ROWS
    return [
        _tag("div", title, "font-weight: bold; margin-top: 6px;"),
        _tag("div", f"Query: {shorten(search.query) or '(none)'}"),
        _table(["score", "", "role", "memory"], rows) if rows else _tag("div", "There was nothing to search.", _QUIET),
        *([_tag("div", f"{more} lower ones are not shown", _QUIET)] if more > 0 else []),
    ]


def _candidate(search: Search, position: int, kept: bool) -> list[Cell]:
    record, style = search.candidates[position], "" if kept else _QUIET
    why = ("✓ kept", _GREEN + _SHORT) if kept else (f"✗ {search.why(position)}", _QUIET + _SHORT)
    return [(f"{search.scores[position]:.3f}", style), why, (record.role, style), (shorten(record.text), style)]


def _tools(runs: Sequence[ToolRun]) -> str:
    rows = [[(run.name, ""), (shorten(run.arguments), ""), _result(run)] for run in runs]
    title = f"Tools that ran: {', '.join(run.name for run in runs)}"
    return _details(title, _table(["tool", "arguments", "result"], rows), is_open=True)


def _result(run: ToolRun) -> Cell:
    events = "".join(f"\n{event.kind}: {shorten(event.text)}" for event in run.events)
    return (shorten(run.result) + events, _RED if run.is_error else "")


# --- texts ---


def _usage(usage: UsageDetails) -> str:
    if not usage:
        return "no usage reported"
    sums = f"{usage.get('input_token_count', 0):,} tokens in, {usage.get('output_token_count', 0):,} out"
    return sums + (" (estimated)" if usage.estimated else "")


def _kept(state: Mapping[str, Any]) -> str:
    messages = state.get("messages")
    return _count(len(messages), "message") if isinstance(messages, list) else ", ".join(map(str, state)) or "nothing"


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _shown(message: Message) -> str:
    return " ".join(filter(None, map(_content, message.contents)))


def _content(content: Any) -> str:
    if isinstance(content, ToolCall):
        return f"calls {content.name}({shorten(content.arguments)})"
    return (
        shorten(content.result) if isinstance(content, ToolResult) else shorten(content.text, 2 * MAX_TEXT, lines=True)
    )


def _tokens_of(message: Message, model: str) -> int:
    return sum(tokens.count_message(wire, model) for wire in to_wire([message]))


def _last(messages: Sequence[Message]) -> Sequence[Message]:
    return messages[-MAX_ROWS:]


# --- HTML ---


def _card(*parts: str) -> str:
    return f'<div style="{_CARD}">{"".join(parts)}</div>'


def _tag(name: str, text: object, style: str = "") -> str:
    shown = escape(shorten(str(text), MAX_LETTERS, lines=True))
    return f'<{name} style="{style}">{shown}</{name}>' if style else f"<{name}>{shown}</{name}>"


def _details(title: str, body: str, is_open: bool = False) -> str:
    summary = f'<summary style="cursor: pointer;">{escape(shorten(title))}</summary>'
    return f"<details{' open' if is_open else ''}>{summary}{body}</details>"


def _table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    top = "".join(_tag("th", name, _CELL + _QUIET + _SHORT) for name in head)
    body = "".join(f"<tr>{''.join(_tag('td', value, _CELL + style) for value, style in row)}</tr>" for row in rows)
    return f'<table style="{_TABLE}">{f"<thead><tr>{top}</tr></thead>" if head else ""}<tbody>{body}</tbody></table>'
