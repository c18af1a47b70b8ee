"""What a live run of the experiment will cost, measured offline before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memlab import prices
from memlab.errors import ConfigurationError
from memlab.experiments.background import run_sync
from memlab.experiments.orders.controls import CONTROLS
from memlab.experiments.orders.parts import Part, visits_of
from memlab.settings import Lab, read_settings


@dataclass(frozen=True)
class Cost:
    """An estimate: requests, tokens in and out, tokens embedded, and the price (None: not known)."""

    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    embedded_tokens: int
    usd: float | None


def estimate_cost(parts: Sequence[Part], lab: Lab) -> Cost:
    """What `lab` would cost for these parts, measured by running them offline with the classroom model.

    A real model writes longer answers and may call tools more often: take it as a lower estimate.
    """
    offline = Lab(read_settings({}, {}, "offline"))
    for part in parts:
        if part.name not in CONTROLS:
            run_sync(visits_of(part, offline))
    meter, chat, embeddings = offline.meter, offline.model, offline.embedding_model
    tokens_in, tokens_out = meter.input_tokens[chat], meter.output_tokens[chat]
    embedded = meter.input_tokens[embeddings]
    chat_usd, embedding_usd = (
        prices.cost_usd(lab.model, tokens_in, tokens_out),
        prices.cost_usd(lab.embedding_model, embedded),
    )
    usd = None if chat_usd is None or embedding_usd is None else chat_usd + embedding_usd
    return Cost(lab.model, sum(meter.requests.values()), tokens_in, tokens_out, embedded, usd)


def agree_on_cost(cost: Cost, limit_usd: float) -> None:
    """Print what it will cost. Raises ConfigurationError when that is not known, or over the limit."""
    price = "an unknown price" if cost.usd is None else f"about ${cost.usd:.4f}"
    print(
        f"live with {cost.model}: about {cost.requests:,} requests, {cost.input_tokens:,} tokens in, "
        f"{cost.output_tokens:,} out, {cost.embedded_tokens:,} embedded, for {price} (measured offline: at least that)"
    )
    if cost.usd is None or cost.usd > limit_usd:
        raise ConfigurationError(
            f"that is {price}, over limit_usd={limit_usd:g}; ask for fewer users, visits or strategies, or raise it"
        )
