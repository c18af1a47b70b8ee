"""Prices and context windows: a dated table in `data/prices.csv` that the learner can edit."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from memlab.assets import data_path
from memlab.errors import InvalidInputError


@dataclass(frozen=True)
class Price:
    """What a model costs, in US dollars per million tokens, and how many tokens fit in its window."""

    model: str
    input_per_million: float
    output_per_million: float
    context_window: int
    as_of: str
    source: str


def load_prices(path: str | Path | None = None) -> dict[str, Price]:
    """Read a price table; by default `data/prices.csv`, which is yours to edit.

    Columns: model, input_per_million, output_per_million, context_window, as_of (YYYY-MM-DD), source.
    Prices change: `as_of` says when a row was true.

    Raises `InvalidInputError` when the file is missing or a row can't be read.
    """
    path = data_path("prices.csv") if path is None else Path(path)
    try:
        return dict(_read_prices(path, path.stat().st_mtime_ns))
    except FileNotFoundError:
        raise InvalidInputError(f"There is no price table at {path}: pass the path of a CSV file.") from None


@lru_cache(maxsize=4)
def _read_prices(path: Path, changed: int) -> dict[str, Price]:
    """`changed` is the file's time stamp: an edited file is read again."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {price.model: price for price in (_price(row, path) for row in rows)}


def _price(row: dict[str, str], path: Path) -> Price:
    try:
        return Price(
            model=row["model"].strip(),
            input_per_million=float(row["input_per_million"]),
            output_per_million=float(row["output_per_million"]),
            context_window=int(row["context_window"]),
            as_of=row["as_of"].strip(),
            source=row["source"].strip(),
        )
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        given = json.dumps(row, ensure_ascii=False, default=str)
        raise InvalidInputError(
            f"A row of {path.name} can't be read ({error}): {given}. Each row needs model, "
            "input_per_million, output_per_million, context_window, as_of and source."
        ) from error


def _find_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    dated = re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model)  # gpt-4o-mini-2024-07-18 costs what gpt-4o-mini costs
    return prices.get(model) or prices.get(dated)


def context_window(model: str) -> int | None:
    """The number of tokens that fit in a request and its reply; None for a model not in the price table.

    >>> context_window("classroom-8k"), context_window("no-such-model")
    (8192, None)
    """
    price = _find_price(model, load_prices())
    return price.context_window if price else None


def cost_usd(
    model: str, input_tokens: int, output_tokens: int = 0, prices: Mapping[str, Price] | None = None
) -> float | None:
    """The price of one call in US dollars at list price; None for a model not in the table.

    >>> cost_usd("gpt-4o-mini", 1_000_000, 1_000_000)
    0.75
    >>> cost_usd("classroom-8k", 1_000_000), cost_usd("no-such-model", 1)
    (0.0, None)
    """
    price = _find_price(model, load_prices() if prices is None else prices)
    if price is None:
        return None
    return (input_tokens * price.input_per_million + output_tokens * price.output_per_million) / 1e6
