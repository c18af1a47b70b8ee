"""`memlab chat`: a streamed chat in the console that shows what each turn sends and costs."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING, TextIO

from memlab import prices
from memlab.console import console, in_words, show, styled
from memlab.errors import MemlabError

if TYPE_CHECKING:
    from memlab.experiments.loops import Turn
    from memlab.settings import Lab

_HELP = """\
/memory   what is kept so far
/prompt   what the last request sent
/quit     leave (Ctrl-D does too; Ctrl-C stops an answer)
The parts of a prompt are estimated; what opens the reply makes 3 tokens more."""


class ConsoleChat:
    """A console chat over the loops of the lessons."""

    def __init__(self, lab: Lab, given: argparse.Namespace, runner: asyncio.Runner) -> None:
        from memlab.experiments.loops import Wire
        from memlab.stores.in_memory import InMemoryVectorStore

        self.lab, self.given, self.runner = lab, given, runner
        self.console = console()
        self.history: list[Wire] = []
        self.store = InMemoryVectorStore(embedder=lab.embedder)
        self.last: Turn | None = None
        self.bill = _Bill(lab)

    def talk(self) -> None:
        """Questions and answers until the input ends."""
        self._dim(f"{self.lab.banner()}\nmemory: {self.given.memory}. /help lists the commands.")
        while (line := _read_line(sys.stdin)) is not None:
            if line in ("/quit", "/exit"):
                break
            if line.startswith("/"):
                self._command(line)
            elif line:
                self._turn(line)

    def _turn(self, question: str) -> None:
        import httpx2
        import openai

        print("model> ", end="", flush=True)
        try:
            self.last = self.runner.run(self._ask(question))
        except KeyboardInterrupt:
            self._dim("\n(stopped; nothing of this turn is kept)")
        except (openai.OpenAIError, httpx2.HTTPError, MemlabError, ValueError) as error:
            show(self.console, styled(f"\nerror: {in_words(error)}", "red"))
            self._dim("(nothing of this turn is kept; what was said before is)")
        else:
            self._dim("\n" + self.bill.line(self.last))

    async def _ask(self, question: str) -> Turn:
        from memlab.experiments import loops

        if self.given.memory == "none":
            return await loops.amnesia(self.lab, question, _say)
        if self.given.memory == "full":
            return await loops.full_history(self.lab, self.history, question, _say)
        options = {"top_k": self.given.top_k, "threshold": self.given.threshold}
        return await loops.vector_memory(self.lab, self.store, question, _say, **options)

    def _command(self, line: str) -> None:
        if line == "/memory":
            self._list(self._remembered(), "nothing is kept" + ("" if self.given.memory != "none" else ", ever"))
        elif line == "/prompt":
            self._list([(m["role"], m["content"]) for m in self.last.sent] if self.last else [], "nothing was sent yet")
        else:
            print(_HELP if line == "/help" else f"{line} is not a command:\n{_HELP}")

    def _remembered(self) -> list[tuple[str, str]]:
        from memlab.stores.base import EVERYONE

        if self.given.memory == "vector":
            records = self.store.scan("chat", scope=EVERYONE)
            return [(record.role, record.text) for record in reversed(records)]
        return [(message["role"], message["content"]) for message in self.history]

    def _list(self, messages: list[tuple[str, str]], otherwise: str) -> None:
        for role, text in messages:
            show(self.console, styled(f"{role:>9}: {text}"))
        if not messages:
            print(otherwise)

    def _dim(self, text: str) -> None:
        show(self.console, styled(text, "dim"))


def _say(piece: str) -> None:
    print(piece, end="", flush=True)


def _read_line(stream: TextIO) -> str | None:
    """The next line, stripped; None when the input ends or Ctrl-C is pressed. A piped line is shown."""
    try:
        line = input("\nyou> ").strip().lstrip("\ufeff")
    except (EOFError, KeyboardInterrupt):
        print()
        return None
    if not stream.isatty():
        print(line)
    return line


class _Bill:
    """What the turns so far cost. The classroom model is free, so its tokens are priced as those of real models."""

    def __init__(self, lab: Lab) -> None:
        from memlab.experiments.hundred_turns import PRICED_AS

        self.models = PRICED_AS if lab.offline else (lab.model, lab.embedding_model)
        self.label = f", as if {' + '.join(PRICED_AS)}" if lab.offline else ""
        self.tokens, self.usd = 0, 0.0

    def line(self, turn: Turn) -> str:
        """One line for a turn, and the sums up to it."""
        prompt, answer = turn.usage["input_token_count"], turn.usage["output_token_count"]
        self.tokens += prompt + answer + turn.embedding_tokens
        parts = ", ".join(f"{name} {count}" for name, count in turn.parts.items() if count)
        estimated = " (estimated)" if turn.usage.estimated else ""
        text = f"tokens: prompt {prompt} [{parts}], answer {answer}{estimated}, embedding {turn.embedding_tokens}"
        money = self._money(prompt, answer, turn.embedding_tokens)
        return f"{text} | so far {self.tokens} tokens, {money}{_memories(turn)}"

    def _money(self, prompt: int, answer: int, embedded: int) -> str:
        chat = prices.cost_usd(self.models[0], prompt, answer)
        embedding = prices.cost_usd(self.models[1], embedded) if embedded else 0.0
        if chat is None or embedding is None:
            return "no price known"
        self.usd += chat + embedding
        return f"${self.usd:.6f}{self.label}"


def _memories(turn: Turn) -> str:
    if not turn.trace.searches:
        return ""
    search = turn.trace.searches[0]
    scores = " ".join(f"{search.scores[position]:.2f}" for position in search.kept)
    return f"\nmemories: {len(search.kept)} of {len(search.candidates)} sent" + (f", scores {scores}" if scores else "")
