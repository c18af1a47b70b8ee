"""`memlab tour`: the story of the lessons in a terminal, every claim checked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from memlab.agent import Agent
from memlab.experiments import comparison, hundred_turns, scopes
from memlab.experiments.loops import amnesia, full_history, vector_memory
from memlab.experiments.orders import runs
from memlab.experiments.orders.summary import summarise_orders
from memlab.experiments.repeated_order import repeated_order
from memlab.experiments.takeout import open_kitchen, user_of, visit
from memlab.providers.memory import ChatHistoryMemoryProvider
from memlab.providers.memory_options import ChatHistoryMemoryProviderOptions, SearchTime, State
from memlab.session import AgentSession
from memlab.settings import Lab, connect
from memlab.stores.base import EVERYONE, MemoryScope
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
        await self.five()
        await self.six()
        await self.seven()
        self.nine()

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

    async def five(self) -> None:
        """A session is JSON: saved and resumed."""
        self.title("5  Providers and sessions: a conversation is saved as JSON and resumed")
        agent = Agent(self.lab.chat, "You are a friendly assistant.")
        session = agent.create_session()
        await agent.run("我叫张三", session=session)
        stored = json.dumps(session.to_dict())
        resumed = AgentSession.from_dict(json.loads(stored))
        answer = (await agent.run("我叫什么名字", session=resumed)).text
        self.console.print(f"{len(stored)} bytes of JSON, resumed and asked for the name: {answer}", highlight=False)
        self.claim("张三" in answer, "the resumed session knows the name")

    async def six(self) -> None:
        """One store, many users."""
        self.title("6  Scope isolation: Alice can't eat spicy food, Bob never said so")
        kitchen, orders = open_kitchen("zh"), []
        agent = kitchen.agent(self.lab.chat, [self._memory(InMemoryVectorStore(self.lab.embedder))])
        first, later = kitchen.texts["first_request"], kitchen.texts["request"]
        for user, request in [("Alice", first), ("Alice", later), ("Alice", later), ("Bob", later), ("Bob", later)]:
            await visit(agent, user, request)
            order = kitchen.orders[-1] if kitchen.orders else {}
            orders.append((user, request, kitchen.named(order), kitchen.spicy(order)))
        self.table(["user", "request", "order", "spicy"], [(*row[:3], "yes" if row[3] else "no") for row in orders])
        self.claim(not any(row[3] for row in orders[:3]), "Alice gets nothing spicy: her own words are found again")
        self.claim(any(row[3] for row in orders[3:]), "Bob gets spicy dishes: Alice's words do not reach him")
        ours = await scopes.who_sees_whom(self.lab, ["user_id"])
        everyone = await scopes.who_sees_whom(self.lab, ["user_id"], [])
        self.claim(scopes.leaks(ours) == 0, "searched by user, none of 16 participants sees another user's secret")
        self.claim(scopes.leaks(everyone) > 0, f"searched by EVERYONE, {scopes.leaks(everyone)} pairs of them do")

    async def seven(self) -> None:
        """Memory as a tool that the model calls."""
        self.title("7  Search on demand: the model asks its memory when it needs to")
        store = InMemoryVectorStore(self.lab.embedder)
        options = ChatHistoryMemoryProviderOptions(search_time=SearchTime.ON_DEMAND_FUNCTION_CALLING)
        await visit(Agent(self.lab.chat, context_providers=[self._memory(store)]), "anna", "My name is Anna.")
        agent = Agent(self.lab.chat, context_providers=[self._memory(store, options)])
        runs = [await visit(agent, "anna", question) for question in ("What is my name?", "Hello!")]
        rows = [(r.trace.sent[0].text, r.text, [run.name for run in r.trace.tool_runs] or "none") for r in runs]
        self.table(["asked", "answer", "tools called"], rows)
        self.claim("Anna" in runs[0].text and bool(runs[0].trace.searches), "it searched, and found the name")
        self.claim(not runs[1].trace.searches, "it did not search where nothing was to be found")

    def nine(self) -> None:
        """The agent that repeats itself, and the memory that stops it."""
        self.title("9  The repeated order: told to vary, with a memory that works")
        visits = runs.replay_run("B", lab=self.lab)
        table = runs.run_table("B", visits)
        shown = ["visit", "retrieved", "order", "spicy", "same_as"]
        rows = table[shown].astype(object).where(table[shown].notna(), "").values.tolist()
        heads = ["visit", "retrieved, with its similarity", "order", "spicy", "same as order"]
        self.table(heads, [[_in_words(value) for value in row] for row in rows])
        crowded = all("order" not in row for row in table["retrieved"][3:])
        self.claim(crowded, "from the fourth visit on, only old requests are similar to a new one: no order is found")
        gone = ~table["constraint_in_prompt"]
        self.claim(
            (table["spicy"] == gone).all(), "spicy food comes when her constraint has left the prompt, not before"
        )
        if not self.lab.affordable("72 orders under four strategies", 200_000, 10_000):
            return
        names = ["vector, top 3", "instruction in the search", "order log", "order log + tastes"]
        frame = repeated_order(names, users=3, visits=6, chat_turns_between=2, lab=self.lab, progress=False)
        rates = summarise_orders(frame, by=["strategy"]).set_index("strategy")
        repeats, broken = rates["repeat_rate"].to_dict(), rates["constraint_violations"].to_dict()
        rows = [[name, f"{repeats[name]:.0%}", f"{broken[name]:.0%}"] for name in names]
        self.table(["strategy", "repeats", "constraint broken"], rows)
        self.claim(repeats["order log + tastes"] == 0 < repeats[names[0]], "a log of orders ends the repeats")
        self.claim(
            broken["order log + tastes"] == 0 < broken["order log"],
            "and a search for what the user may eat keeps the constraint, which the log alone forgets",
        )

    def _memory(
        self, store: InMemoryVectorStore, options: ChatHistoryMemoryProviderOptions | None = None
    ) -> ChatHistoryMemoryProvider:
        def whose(session: AgentSession) -> State:
            return State(MemoryScope(user_id=user_of(session)))

        return ChatHistoryMemoryProvider(store, "memories", self.lab.embedder.dimensions, whose, options)

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


def _in_words(value: Any) -> Any:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
