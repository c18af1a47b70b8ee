"""The hundred-turn conversation of lessons 2 and 4: one student, 40 facts, 35 remarks, 25 pasted tables, 40 probes.

`replay` drives it through a loop turn by turn and measures each request; `probe` asks for the facts afterwards.
"""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from memlab import prices
from memlab.assets import data_path
from memlab.errors import InvalidInputError
from memlab.experiments.loops import Turn

if TYPE_CHECKING:
    import pandas as pd

Ask = Callable[[str], Awaitable[Turn]]

PRICED_AS = ("gpt-4o-mini", "text-embedding-3-small")
"""The classroom model costs nothing. To speak of money at all, lessons price its tokens as those of these models."""


@dataclass(frozen=True)
class Probe:
    """A question about a fact that was said in `turn` (counted from 1); any of `expect` in the answer is right."""

    ask: str
    expect: tuple[str, ...]
    turn: int

    def answered_by(self, text: str) -> bool:
        """Whether an answer names the fact."""
        return any(word.casefold() in text.casefold() for word in self.expect)


@dataclass(frozen=True)
class Conversation:
    """What the user says, turn by turn, and the probes."""

    turns: tuple[str, ...]
    probes: tuple[Probe, ...]


@cache
def load_conversation() -> Conversation:
    """The conversation in `data/hundred_turns.json`, with its pasted tables written out."""
    data = json.loads(data_path("hundred_turns.json").read_text(encoding="utf-8"))
    turns = tuple(t["text"] if "text" in t else _pasted(t) for t in data["turns"])
    probes = tuple(Probe(p["ask"], tuple(p["expect"]), p["turn"]) for p in data["probes"])
    return Conversation(turns, probes)


def _pasted(turn: dict[str, Any]) -> str:
    """A table as a student would paste it: invented numbers, the same ones every time."""
    rng = random.Random(turn["seed"])
    return "\n".join([turn["note"], *(_ROWS[turn["paste"]](rng, i) for i in range(turn["rows"]))])


_ROWS: dict[str, Callable[[random.Random, int], str]] = {
    "timetable": lambda r, i: f"line {r.randint(1, 9)}, {6 + i // 6:02}:{r.randint(0, 59):02}, stop {r.randint(1, 40)}",
    "readings": lambda r, i: f"sensor {i % 8}: {r.uniform(17, 24):.2f} C, {r.randint(30, 60)} % humidity",
    "log": lambda r, i: f"{i:04} GET /api/v{r.randint(1, 3)}/items/{r.randint(100, 999)} 200 {r.randint(3, 80)}ms",
    "grades": lambda r, i: f"candidate {r.randint(10000, 99999)}: {r.randint(35, 100)} points, group {r.randint(1, 6)}",
    "prices": lambda r, i: f"item {r.randint(1000, 9999)}, {r.uniform(0.5, 40):.2f} EUR, {r.randint(1, 60)} in stock",
}


async def replay(turns: Sequence[str], ask: Ask, strategy: str) -> pd.DataFrame:
    """Say every turn to `ask` and measure.

    One row a turn: strategy, turn, the estimated tokens of each part (history, memories, input), prompt_tokens,
    completion_tokens, embedding_tokens, and error: "" or the API's code, such as context_length_exceeded.
    """
    import openai
    import pandas as pd

    rows = []
    for number, text in enumerate(turns, start=1):
        row: dict[str, Any] = {"strategy": strategy, "turn": number, "error": ""}
        try:
            turn = await ask(text)
        except openai.BadRequestError as error:
            row["error"] = error.code or "bad_request"
        else:
            row |= turn.parts | {
                "prompt_tokens": turn.usage["input_token_count"],
                "completion_tokens": turn.usage["output_token_count"],
                "embedding_tokens": turn.embedding_tokens,
            }
        rows.append(row)
    frame = pd.DataFrame(rows).reindex(columns=_COLUMNS)
    return frame.fillna(dict.fromkeys(_COLUMNS[3:], 0)).astype(dict.fromkeys(_COLUMNS[3:], int))


_COLUMNS = ["strategy", "turn", "error"]
_COLUMNS += ["history", "memories", "input", "prompt_tokens", "completion_tokens", "embedding_tokens"]


async def probe(probes: Sequence[Probe], ask: Ask, strategy: str) -> pd.DataFrame:
    """Ask every probe. One row each: strategy, ask, turn, text (the answer), answered."""
    import pandas as pd

    rows = []
    for item in probes:
        text = (await ask(item.ask)).text
        rows.append((strategy, item.ask, item.turn, text, item.answered_by(text)))
    return pd.DataFrame(rows, columns=["strategy", "ask", "turn", "text", "answered"])


def with_cost(frame: pd.DataFrame, models: tuple[str, str] = PRICED_AS) -> pd.DataFrame:
    """`replay`'s frame with two more columns: usd a turn (chat and embeddings), and usd_total so far."""
    chat, embedding = models
    rates = [prices.cost_usd(chat, 1), prices.cost_usd(chat, 0, 1), prices.cost_usd(embedding, 1)]
    if any(rate is None for rate in rates):
        raise InvalidInputError(f"data/prices.csv has no price for {chat} or {embedding}; add a line there")
    counts = frame[["prompt_tokens", "completion_tokens", "embedding_tokens"]]
    usd = counts.mul([float(rate or 0) for rate in rates]).sum(axis=1)
    return frame.assign(usd=usd, usd_total=usd.groupby(frame["strategy"]).cumsum())


def break_even(full: pd.DataFrame, other: pd.DataFrame, column: str = "usd") -> int | None:
    """The first turn from which `other` has cost less in total than `full`, and does so to the end; None if never."""
    gap = full[column].cumsum().to_numpy() - other[column].cumsum().to_numpy()
    cheaper = gap > 0
    if not cheaper[-1]:
        return None
    dearer = [i for i, ok in enumerate(cheaper) if not ok]
    return int(full["turn"].iloc[dearer[-1] + 1 if dearer else 0])


def share_answered(results: pd.DataFrame) -> float:
    """The share of probes answered, from 0 to 1."""
    return float(results["answered"].mean())
