"""Which rows of a sweep a figure draws, and what its lines are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from memlab.errors import InvalidInputError
from memlab.show.parts import check_frame
from memlab.show.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

_RANK_COLOURS = {"cosine": BLUE, "bm25": ORANGE, "hybrid": GREEN, "recency": PURPLE, "mmr": SKY, "newest": GREY}
_CYCLE = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK, GREY)
_SERIES = ("dataset", "embedder", "rank", "template")
_WITHOUT_EMBEDDER = ("bm25", "newest")


def group_rows(frame: pd.DataFrame, columns: Sequence[str], group: str) -> pd.DataFrame:
    if "group" in frame:
        rows = frame[frame["group"] == group]
        if rows.empty and len(frame):
            there = ", ".join(map(repr, dict.fromkeys(frame["group"])))
            raise InvalidInputError(f"the frame has no group {group!r}; it has {there}")
    else:
        rows = frame
    check_frame(rows, columns, numbers=[name for name in columns if name not in ("rank", "threshold")])
    return rows


def one_series(rows: pd.DataFrame) -> pd.DataFrame:
    for column in _SERIES:
        if column in rows and rows[column].nunique() > 1:
            there = list(dict.fromkeys(rows[column]))
            raise InvalidInputError(
                f"the frame holds more than one {column}: {', '.join(map(str, there))}. A heat map draws one: "
                f"frame[frame[{column!r}] == {there[0]!r}]"
            )
    if rows.duplicated(["top_k", "threshold"]).any():
        raise InvalidInputError("the frame holds a setting of top_k and threshold twice; keep one row for each")
    return rows


def with_series(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column `series`; a ranking that needs no embedder is one series, whoever embeds."""
    varying = [name for name in _SERIES if name in rows and (name == "rank" or rows[name].nunique() > 1)]
    parts = rows[varying].astype(str)
    if "embedder" in parts:
        parts["embedder"] = parts["embedder"].where(~rows["rank"].isin(_WITHOUT_EMBEDDER), "")
    order = sorted(varying, key=lambda name: name != "rank")
    series = [" · ".join(part for part in row if part) for row in parts[order].itertuples(index=False)]
    return rows.assign(series=series).drop_duplicates(["series", "top_k", "threshold"])


def series_colours(series: pd.Series[Any]) -> dict[str, str]:
    names = list(dict.fromkeys(series))
    if set(names) <= set(_RANK_COLOURS):
        return {name: _RANK_COLOURS[name] for name in names}
    return {name: _CYCLE[place % len(_CYCLE)] for place, name in enumerate(names)}


def title_of(rows: pd.DataFrame, shared: bool = False) -> str:
    """Dataset, rank and embedder, where there is one of them; `shared`: the rank stands beside the lines."""
    single = [name for name in ("dataset", "rank", "embedder") if name in rows and rows[name].nunique() == 1]
    if shared or ("rank" in rows and set(rows["rank"]) <= set(_WITHOUT_EMBEDDER)):
        single = [name for name in single if name != ("rank" if shared else "embedder")]
    return " · ".join(str(rows[name].iloc[0]) for name in single)


def for_title(rows: pd.DataFrame, shared: bool = False) -> str:
    title = title_of(rows, shared)
    return f" for {title}" if title else ""


def threshold_name(rows: pd.DataFrame) -> str:
    by_quantile = "rank" in rows and set(rows["rank"]) == {"bm25"}
    return "threshold (quantile of BM25)" if by_quantile else "threshold (cosine)"


def setting_of(row: pd.Series[Any], rows: pd.DataFrame) -> str:
    """A setting in words; without the threshold where all `rows` have the same."""
    at = f", t = {row['threshold']:.2f}" if rows["threshold"].nunique() > 1 else ""
    return f"k = {row['top_k']:.0f}{at}"
