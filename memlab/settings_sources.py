"""Where settings come from: the environment, which wins, and a `.env` file; and whether they ask for live.

Offline is the default. Live is only on request: `MEMLAB_MODE=live`, or a `.env` file in the project that names a
key or a URL. A key that merely lies in the environment spends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memlab.errors import ConfigurationError
from memlab.messages import clean_text
from memlab.settings_values import PLACEHOLDER, is_placeholder, read_api_key, read_base_url, read_dimensions

OFFLINE_MODEL = "classroom-128k"
OFFLINE_EMBEDDING_MODEL = "use-multilingual"
LIVE_MODEL = "gpt-4o-mini"
LIVE_EMBEDDING_MODEL = "text-embedding-3-small"

# Each setting: the names looked for in the environment and in .env, then the short ones, in .env only.
_NAMES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mode": (("MEMLAB_MODE",), ()),
    "api_key": (("OPENAI_API_KEY",), ("API_KEY",)),
    "base_url": (("OPENAI_BASE_URL",), ("OPENAI_URL",)),
    "model": (("MEMLAB_MODEL", "OPENAI_MODEL"), ("MODEL",)),
    "embedding_model": (("MEMLAB_EMBEDDING_MODEL",), ("EMBEDDING_MODEL",)),
    "dimensions": (("MEMLAB_EMBEDDING_DIMENSIONS",), ("EMBEDDING_DIMENSIONS",)),
}


@dataclass(frozen=True)
class Settings:
    """What was found, and why the mode is what it is. The key never shows in its `repr`."""

    offline: bool
    why: str
    model: str
    embedding_model: str
    dimensions: int | None = None
    base_url: str | None = None
    api_key: str | None = None

    def __repr__(self) -> str:
        key = "set" if self.api_key else "none"
        return f"Settings(offline={self.offline}, why={self.why!r}, model={self.model!r}, api_key={key})"


def read_settings(environ: Mapping[str, str], dotenv: Mapping[str, str], mode: str | None = None) -> Settings:
    """Settings from an environment and the values of a `.env` file; the environment wins.

    Raises ConfigurationError when the mode is unknown, or live lacks what it needs, saying what to set.
    """
    found = {name: _find(environ, dotenv, *names) for name, names in _NAMES.items()}
    offline, why = _mode(mode, found["mode"], dotenv)
    if offline:
        return Settings(True, why, OFFLINE_MODEL, OFFLINE_EMBEDDING_MODEL)
    return Settings(
        False,
        why,
        found["model"] or LIVE_MODEL,
        found["embedding_model"] or LIVE_EMBEDDING_MODEL,
        read_dimensions(found["dimensions"]),
        read_base_url(found["base_url"]),
        read_api_key(found["api_key"], found["base_url"]),
    )


def _find(
    environ: Mapping[str, str], dotenv: Mapping[str, str], names: tuple[str, ...], short: tuple[str, ...]
) -> str | None:
    candidates = [environ.get(n) for n in names] + [dotenv.get(n) for n in (*names, *short)]
    return next((value.strip() for value in candidates if value and value.strip()), None)


def _mode(asked: str | None, named: str | None, dotenv: Mapping[str, str]) -> tuple[bool, str]:
    mode, where = (asked, "mode= says so") if asked else (named, "MEMLAB_MODE says so")
    if mode:
        if mode.lower() not in ("offline", "live"):
            raise ConfigurationError(f"the mode is {mode!r}; it must be 'offline' or 'live'")
        return mode.lower() == "offline", where
    naming = [n for n in ("OPENAI_API_KEY", "API_KEY", "OPENAI_BASE_URL", "OPENAI_URL") if dotenv.get(n, "").strip()]
    real = [n for n in naming if not (n.endswith("KEY") and is_placeholder(dotenv[n]))]
    if real:
        return False, f".env names {real[0]}"
    if naming:
        raise ConfigurationError(PLACEHOLDER)
    return True, "neither MEMLAB_MODE nor a .env file asks for live"


def find_dotenv(start: Path | None = None) -> Path | None:
    """The nearest `.env`, from `start` (default: the working directory) up to the project's root.

    The root is the first folder with a `pyproject.toml` or `.git`. Outside of a project only the working directory
    counts, so that no stranger's file further up is read.
    """
    folder = (start or Path.cwd()).resolve()
    places = [folder, *folder.parents]
    root = next((p for p in places if (p / "pyproject.toml").exists() or (p / ".git").exists()), folder)
    within = places[: places.index(root) + 1]
    return next((place / ".env" for place in within if (place / ".env").is_file()), None)


def load_dotenv(start: Path | None = None) -> dict[str, str]:
    """The values of the `.env` that `find_dotenv` finds. Raises ConfigurationError when it is not UTF-8."""
    from dotenv import dotenv_values

    path = find_dotenv(start)
    try:
        values = dotenv_values(path, encoding="utf-8-sig") if path else {}
    except UnicodeDecodeError:
        raise ConfigurationError("the .env file is not UTF-8 text; save it again with that encoding") from None
    return {name: clean_text(value) for name, value in values.items() if value}
