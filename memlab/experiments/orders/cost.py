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


def estimate_cost(parts: Sequence[Part], lab: Lab, progress: bool = False) -> Cost:
    """What `lab` would cost for these parts, measured by running them offline with the classroom model.

    A real model writes longer answers and may call tools more often: take it as a lower estimate.
    """
    from tqdm.auto import tqdm

    offline = Lab(read_settings({}, {}, "offline"))
    agents = [part for part in parts if part.name not in CONTROLS]
    for part in tqdm(agents, desc="estimate", unit="part", disable=not progress, leave=False):
        run_sync(visits_of(part, offline))
    meter, chat, embeddings = offline.meter, offline.model, offline.embedding_model
    tokens_in, tokens_out = meter.input_tokens[chat], meter.output_tokens[chat]
    embedded = meter.input_tokens[embeddings]
    usd = prices.cost_usd(lab.model, tokens_in, tokens_out), prices.cost_usd(lab.embedding_model, embedded)
    total = None if None in usd else sum(each for each in usd if each is not None)
    return Cost(lab.model, sum(meter.requests.values()), tokens_in, tokens_out, embedded, total)


class Budget:
    """What a live run may spend, counted from now on by the connection's meter."""

    def __init__(self, lab: Lab, limit_usd: float) -> None:
        self.lab, self.limit_usd = lab, limit_usd
        self.before = self._used()

    def _used(self) -> tuple[int, int, int]:
        """Tokens of this connection's two models so far; what else the meter counted is not ours."""
        meter, chat = self.lab.meter, self.lab.model
        return meter.input_tokens[chat], meter.output_tokens[chat], meter.input_tokens[self.lab.embedding_model]

    def spent_usd(self) -> float:
        """What was spent since this budget was made, by prices that `agree` has found."""
        read, written, embedded = (now - then for now, then in zip(self._used(), self.before, strict=True))
        chat = prices.cost_usd(self.lab.model, read, written)
        return (chat or 0.0) + (prices.cost_usd(self.lab.embedding_model, embedded) or 0.0)

    def agree(self, cost: Cost) -> None:
        """Print what it will cost. Raises ConfigurationError when that is not known, or over the limit."""
        price = "an unknown price" if cost.usd is None else f"about ${cost.usd:.4f}"
        print(
            f"live with {cost.model}: about {cost.requests:,} requests, {cost.input_tokens:,} tokens in, "
            f"{cost.output_tokens:,} out, {cost.embedded_tokens:,} embedded, for {price} "
            "(measured offline: at least that)"
        )
        if cost.usd is None:
            raise ConfigurationError(
                f"{self.lab.model} or {self.lab.embedding_model} has no price; add a line for it to data/prices.csv"
            )
        if cost.usd > self.limit_usd:
            raise ConfigurationError(
                f"that is {price}, over limit_usd={self.limit_usd:g}; ask for fewer users, visits or strategies, "
                "or raise it"
            )

    def check(self) -> None:
        """Raises ConfigurationError when more than the limit was spent."""
        spent = self.spent_usd()
        if spent > self.limit_usd:
            raise ConfigurationError(
                f"stopped: ${spent:.4f} spent, over limit_usd={self.limit_usd:g}; with resume= the finished parts are "
                "kept, and a higher limit goes on from there"
            )
