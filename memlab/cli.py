"""The command `memlab`: tour, chat, sweep, orders, lab, serve, doctor."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memlab import __version__, assets, console_orders
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
    sweep = add("sweep", "how retrieval does over top-k, threshold and ranking, on labelled conversations")
    _add_sweep(sweep)
    orders = add("orders", "the agent that repeats its orders: every strategy against it, measured")
    console_orders.add_options(orders)
    lab = add("lab", "open JupyterLab on the lessons")
    lab.add_argument("--no-browser", action="store_true", help="only print the address")
    lab.add_argument("--port", type=int, help="where to listen; by default a free port from 8888")
    serve = add("serve", "the offline endpoint on a port, for other OpenAI clients")
    serve.add_argument("--host", default="127.0.0.1", help="where to listen")
    serve.add_argument("--port", type=int, default=8765, help="0 takes a free one")
    serve.add_argument("--api-key", help="refuse requests without it (default: MEMLAB_SERVE_KEY)")
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


# --- doctor ----------------------------------------------------------------------------------------------------------


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


# --- serve -----------------------------------------------------------------------------------------------------------


def _serve(given: argparse.Namespace) -> int:
    from memlab.offline.server import Server

    key = given.api_key if given.api_key is not None else os.environ.get("MEMLAB_SERVE_KEY")
    _check_serving(given.host, given.port, key)
    stopped = threading.Event()
    before = {each: signal.signal(each, lambda *_: stopped.set()) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        with Server(given.host, given.port, key) as server:
            print(_how_to_reach(server.url, key), flush=True)
            while not stopped.wait(0.2):  # Windows can't interrupt a wait without end
                pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    print(_request_counts(server.counts), flush=True)
    return 0


def _check_serving(host: str, port: int, key: str | None) -> None:
    from memlab.doctor.configuration import is_loopback

    _check_port(port)
    if key is not None and (not key.strip() or not key.isascii() or any(char.isspace() for char in key)):
        raise InvalidInputError("the API key must be ASCII without white space; leave it out to serve without a key")
    if key is None and not is_loopback(host):
        raise ConfigurationError(
            f"{host} can be reached from other machines: add --api-key KEY or set MEMLAB_SERVE_KEY, "
            "or stay with --host 127.0.0.1"
        )


def _check_port(port: int) -> None:
    if not 0 <= port <= 65535:
        raise InvalidInputError(f"the port is {port}; it must be from 0 to 65535, where 0 takes a free one")


def _how_to_reach(url: str, key: str | None) -> str:
    shown = "the-key-you-chose" if key else "any"
    return "\n".join(
        [
            f"The classroom endpoint is at {url} ({'with' if key else 'without'} a key). Ctrl-C stops it.",
            "",
            "Any OpenAI client:",
            f"  OPENAI_BASE_URL={url}",
            f"  OPENAI_API_KEY={shown}",
            "memlab in another process, besides:",
            "  MEMLAB_MODE=live",
            "  MEMLAB_MODEL=classroom-128k",
            "  MEMLAB_EMBEDDING_MODEL=use-multilingual",
        ]
    )


def _request_counts(counts: Mapping[str, int]) -> str:
    each = ", ".join(f"{path} {number}" for path, number in sorted(counts.items()))
    return f"\nstopped after {sum(counts.values())} requests" + (f": {each}" if each else "")


# --- lab -------------------------------------------------------------------------------------------------------------


def _lab(given: argparse.Namespace) -> int:
    if given.port is not None:
        _check_port(given.port)
    folder = _learners_copy(assets.notebooks_path(), Path.cwd() / "memlab-notebooks")
    lessons = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    if not lessons:
        raise ConfigurationError(f"there is no lesson in {folder}; in a clone, run: python notebooks/build.py")
    print(f"Opening {len(lessons)} lessons in {folder}. Ctrl-C stops JupyterLab.", flush=True)
    command = _lab_command(folder, lessons[0].name, given)
    if os.name == "posix":
        os.execv(sys.executable, command)  # JupyterLab takes this process's place, and its signals
    child = subprocess.Popen(command)
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # JupyterLab got it too, and decides
            continue


def _lab_command(folder: Path, first: str, given: argparse.Namespace) -> list[str]:
    """JupyterLab with this Python, without news, update checks and the list of extensions: they ask the network."""
    command = [sys.executable, "-m", "jupyterlab", str(folder), f"--LabApp.default_url=/lab/tree/{first}"]
    command += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    command += ["--LabApp.extension_manager=readonly"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # in a container there is often no one else
    command += ["--no-browser"] if given.no_browser else []
    return command + ([f"--port={given.port}"] if given.port is not None else [])


def _learners_copy(source: Path, target: Path) -> Path:
    """A clone's own notebooks; from a wheel, copies in `target`. A file that is there already stays as it is."""
    if not source.is_relative_to(Path(assets.__file__).resolve().parent):
        return source
    target.mkdir(exist_ok=True)
    kept = 0
    for lesson in source.glob("[0-9][0-9]_*.ipynb"):
        if (target / lesson.name).exists():
            kept += 1
        else:
            shutil.copyfile(lesson, target / lesson.name)
    if kept:
        print(f"{kept} notebooks were in {target.name} already and stay as they are")
    return target


# --- chat -----------------------------------------------------------------------------------------------------------


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


_COMMANDS = {
    "tour": _tour,
    "chat": _chat,
    "sweep": _sweep,
    "orders": _orders,
    "lab": _lab,
    "serve": _serve,
    "doctor": _doctor,
}


if __name__ == "__main__":
    sys.exit(main())
