"""`memlab tour`: the story of lessons 1 to 4 in a terminal, every claim checked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from memlab.experiments import comparison, hundred_turns
from memlab.experiments.loops import amnesia, full_history, vector_memory
from memlab.settings import Lab, connect
from memlab.stores.base import EVERYONE
from memlab.stores.in_memory import InMemoryVectorStore

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

NAMES = [
    ("我叫张三", "我叫什么名字", "张三"),
    ("My name is Anna", "What is my name?", "Anna"),
    ("Меня зовут Олег", "Как меня зовут?", "Олег"),
]


def run(console: Console) -> bool:
    """Tell the story on `console`; whether every claim held. About 2,000,000 tokens, so live it asks before."""
    lab = connect()
    console.print(f"[bold]memlab tour[/]  How does a stateless model come to remember?\n{lab.banner()}\n")
    tour = _Tour(lab, console)
    asyncio.run(tour.tell())
    verdict = "[green]Every claim held.[/]" if tour.failed == 0 else f"[red]{tour.failed} claims did not hold.[/]"
    console.print(
        f"\n{verdict}  {lab.cost_so_far()}\nNext: [bold]memlab lab[/] opens the lessons, "
        "[bold]memlab chat --memory vector[/] lets you talk."
    )
    return tour.failed == 0


class _Tour:
    def __init__(self, lab: Lab, console: Console) -> None:
        self.lab, self.console, self.failed = lab, console, 0
        self.talk = hundred_turns.load_conversation()
        affordable = lab.affordable("100 turns with full history", 2_000_000, 4_000)
        self.turns = self.talk.turns if affordable else self.talk.turns[:12]

    async def tell(self) -> None:
        await self.one()
        await self.two()
        await self.four()

    async def one(self) -> None:
        """Amnesia without history, recall with it."""
        self.title("1  Amnesia: each request carries one message")
        answers = [(said, asked, name, await self._name(said, asked)) for said, asked, name in NAMES]
        self.table(["said", "asked", "alone", "with history"], [(s, a, *pair) for s, a, _, pair in answers])
        self.claim(all(name not in alone for _, _, name, (alone, _) in answers), "alone, the model can't know the name")
        self.claim(all(name in both for _, _, name, (_, both) in answers), "with its history, it knows the name")

    async def _name(self, said: str, asked: str) -> tuple[str, str]:
        await amnesia(self.lab, said)
        history: list[dict[str, str]] = []
        await full_history(self.lab, history, said)
        return (await amnesia(self.lab, asked)).text, (await full_history(self.lab, history, asked)).text

    async def two(self) -> None:
        """What full history costs, and where it ends."""
        self.title(f"2  Full history: one conversation of {len(self.turns)} turns")
        self.history: list[dict[str, str]] = []
        self.full = await hundred_turns.replay(self.turns, self.remember_all, "full history")
        cost = hundred_turns.with_cost(self.full)
        rows = [
            (row.turn, f"{row.prompt_tokens:,}", f"{total:,}", f"${row.usd_total:.4f}")
            for row, total in zip(cost.itertuples(), cost["prompt_tokens"].cumsum(), strict=True)
            if row.turn in (1, 10, 25, 50, 75, 100, len(cost))
        ]
        self.table(["turn", "tokens sent", "so far", f"so far, priced as {hundred_turns.PRICED_AS[0]}"], rows)
        half = len(cost) // 2
        ratio = cost["prompt_tokens"].sum() / cost["prompt_tokens"][:half].sum()
        self.claim(
            3.5 < ratio < 4.5, f"twice the turns cost {ratio:.1f} times the tokens: the total grows quadratically"
        )
        for name in ("classroom-8k", "classroom-32k") if self.lab.offline else ():
            await self._overflow(name)

    async def remember_all(self, text: str) -> Any:
        return await full_history(self.lab, self.history, text)

    async def _overflow(self, model: str) -> None:
        small, history = self.lab.with_model(model), list[dict[str, str]]()
        frame = await hundred_turns.replay(self.turns, lambda text: full_history(small, history, text), model)
        failed = frame[frame["error"] == "context_length_exceeded"]
        turn = failed["turn"].iloc[0] if len(failed) else "none"
        self.claim(len(failed) > 0, f"{model}: the window overflows in turn {turn}: context_length_exceeded")

    async def four(self) -> None:
        """Vector memory on the same conversation, and its flaw."""
        self.title("3, 4  Vectors and vector memory: only what is related goes along (top 6, cosine >= 0.3)")
        self.store = InMemoryVectorStore(self.lab.embedder)
        ask = lambda text: vector_memory(self.lab, self.store, text)  # noqa: E731
        self.vector = await hundred_turns.replay(self.turns, ask, "vector memory")
        shares = await self._shares()
        usd = comparison.break_evens(self.full, self.vector)["usd"]
        overflows = comparison.overflows(self.full, self.vector)
        table = comparison.table(self.full, self.vector, shares, overflows, f"from turn {usd}")
        self.table(["", *table.columns], table.itertuples())
        grows, flat = (comparison.growth_per_turn(frame) for frame in (self.full, self.vector))
        self.claim(
            flat < grows / 100, f"one more turn adds {grows:,.0f} tokens to full history, {flat:.1f} to vector memory"
        )
        share = shares.set_index("strategy")["share_answered"]
        self.claim(
            share["vector memory"] > share["last 20 messages"], "vector memory reaches further back than 20 messages"
        )
        self.claim(usd is not None, f"it is cheaper in total from turn {usd}, embeddings included")
        kept, fresh = self.store.count("chat", scope=EVERYONE), InMemoryVectorStore(self.lab.embedder)
        self.claim(fresh.count("chat", scope=EVERYONE) == 0 < kept, f"its flaw: a restart loses all {kept} records")

    async def _shares(self) -> pd.DataFrame:
        ways = comparison.ways_to_ask(self.lab, self.history, self.store)
        return comparison.shares([await hundred_turns.probe(self.talk.probes, ask, name) for name, ask in ways.items()])

    def title(self, text: str) -> None:
        self.console.rule(f"[bold]{text}", align="left")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        from rich.markup import escape
        from rich.table import Table

        table = Table(*columns, box=None, padding=(0, 2, 0, 0), header_style="bold")
        for row in rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        self.console.print(table)

    def claim(self, holds: Any, text: str) -> None:
        from rich.markup import escape

        self.failed += not holds
        self.console.print(f"[{'green' if holds else 'red'}]{'✓' if holds else '✗'}[/] {escape(text)}")
