"""The command `memlab`: tour, chat, sweep, orders, lab, serve, doctor."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

from memlab import __version__, console_lab, console_orders, console_serve
from memlab.console import HelpFormatter, console, in_words, show, styled
from memlab.errors import ConfigurationError, InvalidInputError, MemlabError

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130  # exit codes; 0 is success


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code.

    0: done; 1: a claim of the tour failed, or the doctor found an error; 2: wrong use or a set-up that can't work.
    """
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        _speak_utf8(stream)
    parser = _parser()
    given = parser.parse_args(argv)
    if given.command is None:
        parser.print_help()
        return 0
    try:
        return int(_COMMANDS[given.command](given))
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if getattr(given, "debug", False) or not _is_known(error):
            raise
        print(f"memlab: {in_words(error)}", file=sys.stderr)
        return WRONG_USE


def _speak_utf8(stream: Any) -> None:
    """UTF-8 unless PYTHONIOENCODING asks for something else; what can't be written becomes a question mark."""
    if hasattr(stream, "reconfigure"):
        encoding = stream.encoding if os.environ.get("PYTHONIOENCODING") else "utf-8"
        stream.reconfigure(encoding=encoding, errors="replace")


def _is_known(error: Exception) -> bool:
    if isinstance(error, MemlabError | OSError):
        return True
    openai = sys.modules.get("openai")
    return openai is not None and isinstance(error, openai.OpenAIError)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show an error's traceback")
    parser = argparse.ArgumentParser(
        "memlab", description="How does a stateless language model come to remember?", parents=[common]
    )
    parser.add_argument("--version", action="version", version=f"memlab {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common], formatter_class=HelpFormatter)

    add("tour", "the story of lessons 1 to 9 in the terminal, every claim checked")
    chat = add("chat", "talk to the model, and see what each turn sends and costs")
    chat.add_argument("--memory", choices=("none", "full", "vector"), default="full", help="what a request carries")
    chat.add_argument("--model", help="another chat model, such as classroom-8k")
    chat.add_argument("--top-k", type=int, default=6, help="vector: send at most this many memories")
    chat.add_argument("--threshold", type=float, default=0.3, help="vector: the lowest cosine similarity")
    _add_sweep(add("sweep", "how retrieval does over top-k, threshold and ranking, on labelled conversations"))
    console_orders.add_options(
        add(
            "orders",
            "the agent that repeats its orders: every strategy measured (minutes; interrupted, it goes on)",
        )
    )
    console_lab.add_options(add("lab", "open JupyterLab on the lessons"))
    console_serve.add_options(add("serve", "the offline endpoint on a port, for other OpenAI clients"))
    doctor = add("doctor", "what is wrong with this set-up, and what to do")
    doctor.add_argument("--no-request", action="store_true", help="send nothing to a live endpoint")
    return parser


def _add_sweep(sweep: argparse.ArgumentParser) -> None:
    listed = "separated by commas"
    sweep.add_argument(
        "dataset",
        nargs="*",
        default=["teaching"],
        metavar="DATASET",
        help="'teaching', or a file: LoCoMo or LongMemEval (.json), your transcript (.jsonl, .csv; with --questions), "
        "a folder in the format of the teaching set, or both files of MADial-Bench",
    )
    sweep.add_argument("--questions", metavar="FILE", help="questions on your transcript: columns ask, evidence")
    sweep.add_argument("--rank", default="cosine,bm25,hybrid", help=f"rankings, {listed}")
    sweep.add_argument("--embedder", nargs="+", metavar="NAME", help="embedding models; by default that of the set-up")
    sweep.add_argument("--top-k", default="1-20", help="as 1-20 or 1,3,6")
    sweep.add_argument("--threshold", default="0:1:50", help="as from:to:how many, 0.2,0.3 or none")
    stored = "what is stored of a turn, such as '{day} {speaker}: {text}'"
    sweep.add_argument("--template", nargs="+", default=["{text}"], help=stored)
    sweep.add_argument("--out", default="memlab-sweep", metavar="DIR", help="where the table and the pictures go")
    sweep.add_argument("--jobs", type=int, default=1, help="processes at once; -1 for all cores")
    sweep.add_argument("--yes", action="store_true", help="live: spend the price that is shown")


def _tour(given: argparse.Namespace) -> int:
    from memlab import tour

    return 0 if tour.run(console()) else FAILED


def _chat(given: argparse.Namespace) -> int:
    from memlab.console_chat import ConsoleChat
    from memlab.settings import connect

    if given.top_k < 0:
        raise InvalidInputError(f"--top-k is {given.top_k}; it must be 0 or more")
    if not -1 <= given.threshold <= 1:
        raise InvalidInputError(f"--threshold is {given.threshold}; a cosine similarity lies between -1 and 1")
    lab = connect(model=given.model)
    with asyncio.Runner() as runner:
        try:
            ConsoleChat(lab, given, runner).talk()
        finally:
            runner.run(lab.client.close())
    return 0


def _sweep(given: argparse.Namespace) -> int:
    from memlab.console_sweep import run

    return run(given, console())


def _orders(given: argparse.Namespace) -> int:
    return console_orders.run(given, console())


def _doctor(given: argparse.Namespace) -> int:
    from memlab.doctor import findings
    from memlab.settings import load_dotenv

    try:
        dotenv = load_dotenv()
    except ConfigurationError:  # not UTF-8: one of the findings
        dotenv = {}
    found = findings(os.environ, dotenv, request=not given.no_request)
    styles = {"ok": "green", "warn": "yellow", "error": "bold red"}
    screen = console()
    for finding in found:
        show(screen, styled(f"{finding.level:6}", styles[finding.level]).append(finding.what, "default"))
        if finding.remedy:
            show(screen, styled(f"      -> {finding.remedy}", "cyan"))
    levels = [finding.level for finding in found]
    screen.print(f"\nerrors: {levels.count('error')}, warnings: {levels.count('warn')}")
    return FAILED if "error" in levels else 0


_COMMANDS = {
    "tour": _tour,
    "chat": _chat,
    "sweep": _sweep,
    "orders": _orders,
    "lab": console_lab.run,
    "serve": console_serve.run,
    "doctor": _doctor,
}


if __name__ == "__main__":
    sys.exit(main())
