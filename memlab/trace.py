"""The trace of a turn: what was searched, what was sent and by whom, what was dropped, called, and cost.

Every `AgentResponse` carries one. Recording costs next to nothing: tokens are counted when somebody asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memlab import tokens
from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.markup import search_html, trace_html
from memlab.messages import Message, MessageSource, UsageDetails, to_wire
from memlab.vectors import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

PARTS = ("instructions", "history", "memories", "input", "tool loop", "tools")
"""The parts of a prompt, in the order of a request."""

_PART_OF = {"external": "input", "history": "history", "provider": "memories", "model": "tool loop"}


@dataclass(frozen=True)
class Search:
    """One search of a store: every candidate with its score, and which of them were kept.

    `candidates` (oldest first) and `scores` (n,) go together; `kept` holds positions, best first. `cosine` is the
    similarity that a threshold is about, where something else ranks.
    """

    source_id: str
    query: str
    candidates: Sequence[Any]
    scores: FloatArray
    kept: IntArray
    top_k: int
    threshold: float | None = None
    rank: str = "cosine"
    cosine: FloatArray | None = None

    def why(self, position: int) -> str:
        """Why the candidate at `position` was kept or not."""
        if position in self.kept:
            return "kept"
        similarity = self.scores if self.cosine is None else self.cosine
        below = self.threshold is not None and similarity[position] < self.threshold
        return f"below the threshold {self.threshold:g}" if below else f"beyond top {self.top_k}"

    def frame(self) -> pd.DataFrame:
        """One row a candidate, best first: text, role, score, kept, why."""
        import pandas as pd

        order = sorted(range(len(self.scores)), key=lambda i: -self.scores[i])
        rows = [
            {
                "text": self.candidates[i].text,
                "role": self.candidates[i].role,
                "score": float(self.scores[i]),
                "kept": i in self.kept,
                "why": self.why(i),
            }
            for i in order
        ]
        return pd.DataFrame(rows, columns=["text", "role", "score", "kept", "why"])

    def __repr__(self) -> str:
        return f"Search({self.source_id!r}, {self.query[:80]!r}, kept {len(self.kept)} of {len(self.scores)})"

    def _repr_html_(self) -> str:
        return search_html(self)


@dataclass(frozen=True)
class Dropped:
    """Messages that were stored but not sent, and why."""

    source_id: str
    messages: Sequence[Message]
    why: str


@dataclass
class ModelCall:
    """One request to a model: the messages it got, with their sources, the tools, and what it reported."""

    messages: Sequence[Message]
    tools: Sequence[dict[str, Any]] = ()
    model: str = ""
    usage: UsageDetails = field(default_factory=UsageDetails)
    seconds: float = 0.0

    def tokens_by_part(self) -> dict[str, int]:
        """Estimated prompt tokens of each part of the request; their sum leaves out the 3 that prime the reply."""
        counts = dict.fromkeys(PARTS, 0)
        for message in self.messages:
            counts[part_of(message)] += sum(tokens.count_message(wire, self.model) for wire in to_wire([message]))
        counts["tools"] = tokens.count_tools(list(self.tools), self.model) if self.tools else 0
        return counts


@dataclass(frozen=True)
class Event:
    """Something a tool did that is worth remembering as such: an order that was placed.

    `kind` is the kind of the memory record it becomes, `text` its text.
    """

    kind: str
    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or not isinstance(self.text, str):
            raise InvalidTypeError(f"Event({self.kind!r:.40}, {self.text!r:.40}): kind and text must be strings")
        if not self.kind.strip():
            raise InvalidInputError(f"an event's kind is {self.kind!r}; say what kind of thing happened")


@dataclass(frozen=True)
class ToolRun:
    """One call of a tool: its arguments as the model wrote them, the result that went back, and its events."""

    name: str
    arguments: str
    result: str
    is_error: bool
    seconds: float
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Something went wrong and the run went on. Holds the kind of error, never its text."""

    where: str
    error: str


@dataclass
class Trace:
    """What one run did. The lists are in the order in which things happened."""

    searches: list[Search] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    tool_runs: list[ToolRun] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sent(self) -> Sequence[Message]:
        """The messages of the first request, as the model got them, each with its source."""
        return self.calls[0].messages if self.calls else []

    def tokens_by_part(self) -> dict[str, int]:
        """Estimated prompt tokens by part, over all model calls of the turn."""
        total = dict.fromkeys(PARTS, 0)
        for call in self.calls:
            for part, count in call.tokens_by_part().items():
                total[part] += count
        return total

    def frame(self) -> pd.DataFrame:
        """One row a message of the first request: part, source, role, text, tokens (an estimate).

        Tools have a row of their own, with their names for a text: so the tokens add up to those of the first
        call's `tokens_by_part()`.
        """
        import pandas as pd

        call = self.calls[0] if self.calls else ModelCall([])
        rows = [
            {
                "part": part_of(message),
                "source": message.source.source_id or message.source.kind,
                "role": message.role,
                "text": message.text,
                "tokens": sum(tokens.count_message(wire, call.model) for wire in to_wire([message])),
            }
            for message in call.messages
        ]
        if call.tools:
            names = ", ".join(tool["function"]["name"] for tool in call.tools)
            count = tokens.count_tools(call.tools, call.model)
            rows.append({"part": "tools", "source": "tools", "role": "", "text": names, "tokens": count})
        return pd.DataFrame(rows, columns=["part", "source", "role", "text", "tokens"])

    def __repr__(self) -> str:
        return f"Trace({', '.join(f'{len(items)} {name}' for name, items in vars(self).items() if items) or 'empty'})"

    def _repr_html_(self) -> str:
        return trace_html(self, part_of)


def part_of(message: Message) -> str:
    """Which part of a prompt a message belongs to: one of `PARTS`."""
    if message.role in ("system", "developer") and message.source == MessageSource("external"):
        return "instructions"
    return _PART_OF[message.source.kind]
