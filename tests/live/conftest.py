"""Two live endpoints in other processes: `memlab serve` with a key, and a stub that answers in another shape."""

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_DROPPED = re.compile(r"^(OPENAI|MEMLAB)|_PROXY$", re.IGNORECASE)

Environment = dict[str, str]
Run = Callable[..., subprocess.CompletedProcess[str]]


def clean_environment() -> Environment:
    """The environment without settings and proxies of its own."""
    kept = {name: value for name, value in os.environ.items() if not _DROPPED.search(name)}
    return kept | {"PYTHONIOENCODING": "utf-8"}


def live(url: str, key: str, model: str, embedding_model: str) -> Environment:
    return {
        "MEMLAB_MODE": "live",
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": key,
        "MEMLAB_MODEL": model,
        "MEMLAB_EMBEDDING_MODEL": embedding_model,
    }


@contextmanager
def endpoint(*command: str) -> Iterator[str]:
    """The base URL that a server prints when it is ready."""
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, text=True, encoding="utf-8", env=clean_environment()
    )
    try:
        yield re.search(r"http://\S+/v1", process.stdout.readline())[0]
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(scope="session")
def served() -> Iterator[Environment]:
    """The settings of `memlab serve --api-key`."""
    key = secrets.token_hex(12)
    with endpoint("-m", "memlab.cli", "serve", "--port", "0", "--api-key", key) as url:
        yield live(url, key, "classroom-128k", "use-multilingual")


@pytest.fixture(scope="session")
def stubbed() -> Iterator[Environment]:
    """The settings of the stub."""
    with endpoint(str(ROOT / "tests" / "live" / "stub.py")) as url:
        yield live(url, secrets.token_hex(12), "stub-chat", "stub-vectors")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run this Python in a folder without .env, with some settings."""

    def run_python(settings: Environment, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            env=clean_environment() | settings,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=600,
            **options,
        )

    return run_python
