"""What a reducer still sends of a long history, and how much of a prompt is about the question at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from memlab import tokens
from memlab.experiments.hundred_turns import Probe
from memlab.experiments.loops import Wire
from memlab.messages import Message
from memlab.providers.reducers import Reducer

if TYPE_CHECKING:
    import pandas as pd


async def kept_by_reducers(
    history: Sequence[Wire], reducers: Mapping[str, Reducer | None], fact_turns: Iterable[int]
) -> pd.DataFrame:
    """One row for each message of the user and each reducer (None keeps all).

    Columns: turn, strategy, status ("sent" or "dropped"), kind ("fact" or "other").
    """
    import pandas as pd

    messages, facts, rows = [Message(wire["role"], wire["content"]) for wire in history], set(fact_turns), []
    for name, reducer in reducers.items():
        kept = {id(message) for message in (await reducer.reduce(messages) if reducer else messages)}
        for turn, message in enumerate((m for m in messages if m.role == "user"), start=1):
            status = "sent" if id(message) in kept else "dropped"
            rows.append((turn, name, status, "fact" if turn in facts else "other"))
    return pd.DataFrame(rows, columns=["turn", "strategy", "status", "kind"])


async def reduced(history: Sequence[Wire], reducer: Reducer) -> list[Wire]:
    """The history that goes along when `reducer` shortens it."""
    kept = await reducer.reduce([Message(wire["role"], wire["content"]) for wire in history])
    return [{"role": message.role, "content": message.text} for message in kept]


def signal_share(sent: Sequence[Wire], evidence: str) -> float:
    """The share of a prompt's tokens (an estimate) that stand in the message which answers the question."""
    counts = [tokens.count_message(message) for message in sent]
    useful = sum(count for count, message in zip(counts, sent, strict=True) if message["content"] == evidence)
    return useful / sum(counts)


def fact_turns(probes: Iterable[Probe]) -> set[int]:
    """The turns in which facts were said."""
    return {probe.turn for probe in probes}
