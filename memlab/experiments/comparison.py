"""Full history against vector memory: the comparison table of lesson 4, every cell measured or computed."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memlab.experiments import forgetting
from memlab.experiments.hundred_turns import Ask, break_even, with_cost
from memlab.experiments.loops import Turn, Wire, amnesia, full_history, vector_memory
from memlab.providers.reducers import MessageCountReducer
from memlab.settings import Lab
from memlab.stores.base import VectorStore

if TYPE_CHECKING:
    import pandas as pd


def together(*frames: pd.DataFrame) -> pd.DataFrame:
    """Several frames of `replay` in one."""
    import pandas as pd

    return pd.concat(frames, ignore_index=True)


def ways_to_ask(lab: Lab, history: Sequence[Wire], store: VectorStore) -> dict[str, Ask]:
    """Four ways to answer a probe, none of which adds to the memory it asks."""

    async def from_last_20(question: str) -> Turn:
        recent = await forgetting.reduced(history, MessageCountReducer(20))
        return await full_history(lab, recent, question)

    return {
        "no memory": lambda question: amnesia(lab, question),
        "last 20 messages": from_last_20,
        "full history": lambda question: full_history(lab, list(history), question),
        "vector memory": lambda question: vector_memory(lab, store, question, remember=False),
    }


def shares(results: Sequence[pd.DataFrame], resamples: int = 2000, seed: int = 0) -> pd.DataFrame:
    """The share of probes answered, with a 95 % interval from a bootstrap over the probes.

    Columns: strategy, share_answered, low, high. Source: Efron, Tibshirani, An Introduction to the Bootstrap (1993).
    """
    import pandas as pd

    rng, rows = np.random.default_rng(seed), []
    for frame in results:
        answered = frame["answered"].to_numpy(dtype=float)
        means = rng.choice(answered, (resamples, len(answered))).mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        rows.append((frame["strategy"].iloc[0], answered.mean(), low, high))
    return pd.DataFrame(rows, columns=["strategy", "share_answered", "low", "high"])


def break_evens(full: pd.DataFrame, vector: pd.DataFrame) -> dict[str, int | None]:
    """The turn from which vector memory has cost less in total, in prompt tokens and in money with embeddings."""
    return {
        "prompt_tokens": break_even(full, vector, "prompt_tokens"),
        "usd": break_even(with_cost(full), with_cost(vector), "usd"),
    }


def overflows(full: pd.DataFrame, vector: pd.DataFrame) -> dict[int, list[int]]:
    """How many turns of each would not fit into a window of 8k and of 32k tokens."""
    return {window: [int((f["prompt_tokens"] > window).sum()) for f in (full, vector)] for window in (8_192, 32_768)}


def growth_per_turn(frame: pd.DataFrame) -> float:
    """Prompt tokens that one more turn adds, over the second half of a conversation: the slope of a straight line.

    Turns whose own input is long (a pasted table) are left out, since they say nothing about the memory.
    """
    late = frame.iloc[len(frame) // 2 :]
    usual = late[late["input"] < 200]
    return float(np.polyfit(usual["turn"], usual["prompt_tokens"], 1)[0])


def lines_of_code(function: Callable[..., Any]) -> int:
    """Lines of a function, its docstring, comments and blank lines left out."""
    tree = ast.parse(inspect.getsource(function))
    body: Any = tree.body[0]
    if ast.get_docstring(body):
        body.body = body.body[1:]
    return len(ast.unparse(body).splitlines())


def table(
    full: pd.DataFrame,
    vector: pd.DataFrame,
    answered: pd.DataFrame,
    overflow: Mapping[int, Sequence[int]],
    cheaper_from: str,
) -> pd.DataFrame:
    """The comparison as text, one column for each strategy.

    `overflow` maps a window to the number of turns over it, for both; `cheaper_from` says what `break_evens` found.
    """
    import pandas as pd

    share = answered.set_index("strategy")["share_answered"]
    cells = [_column(frame, share[name], loop) for frame, name, loop in _strategies(full, vector)]
    frame = pd.DataFrame(dict(zip(("full history", "vector memory"), cells, strict=True)))
    for window, counts in overflow.items():
        frame.loc[f"turns over a window of {window:,}"] = [f"{count} of {len(full)}" for count in counts]
    frame.loc["cheaper in total, embeddings included"] = ["before that", cheaper_from]
    extra = int(vector["embedding_tokens"].sum())
    frame.loc["extra cost"] = ["none", f"embedding calls: {extra:,} tokens in {len(vector)} turns"]
    return frame


def _strategies(full: pd.DataFrame, vector: pd.DataFrame) -> list[tuple[pd.DataFrame, str, Callable[..., Any]]]:
    return [(full, "full history", full_history), (vector, "vector memory", vector_memory)]


def _column(frame: pd.DataFrame, share: float, loop: Callable[..., Any]) -> pd.Series[str]:
    import pandas as pd

    parts = {full_history: "client", vector_memory: "client, embedder, store"}[loop]
    tokens = frame["prompt_tokens"]
    return pd.Series(
        {
            "lines of code": f"{lines_of_code(loop)} ({parts})",
            "tokens a request, first 20 turns": f"{tokens.iloc[:20].mean():,.0f}",
            "tokens a request, last 20 turns": f"{tokens.iloc[-20:].mean():,.0f}",
            "tokens in all": f"{tokens.sum():,}",
            "probes answered": f"{share:.0%}",
        }
    )


def run_in_new_process(code: str) -> str:
    """What a new Python process prints when it runs `code`."""
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", env=environment, check=True
    )
    return done.stdout.strip()
