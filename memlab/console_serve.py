"""`memlab serve`: the offline endpoint on a port, for any OpenAI client."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Mapping

from memlab.console import check_port
from memlab.errors import ConfigurationError, InvalidInputError


def add_options(serve: argparse.ArgumentParser) -> None:
    """The options of the command."""
    serve.add_argument("--host", default="127.0.0.1", help="where to listen")
    serve.add_argument("--port", type=int, default=8765, help="0 takes a free one")
    serve.add_argument("--api-key", help="refuse requests without it (default: MEMLAB_SERVE_KEY)")


def run(given: argparse.Namespace) -> int:
    """Run the command until Ctrl-C or SIGTERM; 0 when it has stopped.

    Raises InvalidInputError for a port or a key that can't be, ConfigurationError when others could use it unasked.
    """
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

    check_port(port)
    if key is not None and (not key.strip() or not key.isascii() or any(char.isspace() for char in key)):
        raise InvalidInputError("the API key must be ASCII without white space; leave it out to serve without a key")
    if key is None and not is_loopback(host):
        raise ConfigurationError(
            f"{host} can be reached from other machines: add --api-key KEY or set MEMLAB_SERVE_KEY, "
            "or stay with --host 127.0.0.1"
        )


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
