"""What a stored notebook may hold, and when two executions of it count as the same."""

from __future__ import annotations

import base64
import difflib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

Cell = dict[str, Any]
Output = dict[str, Any]

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)

_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_TOLERANCE = 1.001e-3  # numbers agree to 3 decimals
_KEY_LIKE = re.compile(r"\bsk-[\w-]{8,}|\bgh[a-z]_\w{16,}|\bhf_\w{16,}|\bAKIA[0-9A-Z]{16}\b|\bBearer +[\w.-]{16,}")
_HOST = re.compile(r"https?://(\[[^\]]*\]|[^\s/:\"'<>)\\]+)")
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "[::1]"}
_USER_PATH = re.compile(r"/home/\w+/|/Users/\w+/|[A-Za-z]:\\+Users\\+\w+|/tmp/|/var/folders/|ipykernel_\d+")


# --- Before storing -----------------------------------------------------------------------------------------


def strip(cells: list[Cell]) -> None:
    """Take out what differs from run to run: widget views, timings, tracebacks (the error itself stays)."""
    for cell in cells:
        cell["metadata"].pop("execution", None)
        if cell["cell_type"] == "code":
            cell["outputs"] = [output for output in cell["outputs"] if not _is_widget(output)]
            for output in cell["outputs"]:
                if output["output_type"] == "error":
                    output["traceback"] = [f"{output['ename']}: {output['evalue']}"]


def _is_widget(output: Output) -> bool:
    return WIDGET_VIEW in output.get("data", {})


def leaks(cells: list[Cell]) -> list[str]:
    """What an output shows but must not: a path of this machine, something like a key, a host on the network."""
    found = []
    for number, cell in enumerate(cells, 1):
        for output in cell.get("outputs", []):
            text = "\n".join(texts(output).values())
            found += [f"cell {number}: {problem}" for problem in _problems(text)]
    return found


def _problems(text: str) -> Iterator[str]:
    for path in sorted(_machine_paths()):
        if path in text:
            yield f"an output holds a path of this machine: …{path}…"
    if match := _USER_PATH.search(text):
        yield f"an output holds a path of a machine: {match[0]}"
    secrets = [value for name, value in os.environ.items() if SECRET_NAME.search(name) and len(value) >= 8]
    if _KEY_LIKE.search(text) or any(secret in text for secret in secrets):
        yield "an output holds something like a key (not shown here)"
    for host in sorted({host for host in _HOST.findall(text) if host not in _LOCAL_HOSTS}):
        yield f"an output holds the host {host}"


def _machine_paths() -> set[str]:
    repository = Path(__file__).resolve().parent.parent
    places = [repository, Path.home(), Path(sys.prefix), Path(tempfile.gettempdir())]
    return {str(place) + os.sep for place in places if len(place.parts) > 1}


# --- Comparing ----------------------------------------------------------------------------------------------


def differences(stored: list[Cell], fresh: list[Cell]) -> list[str]:
    """Readable differences between two lists of cells, sources and outputs; empty when they agree."""
    found = []
    for number, (old, new) in enumerate(zip_longest(stored, fresh), 1):
        if old is None or new is None or _source(old) != _source(new):
            return [
                f"cell {number}: the source differs from the .py file; build again\n{_diff(_text(old), _text(new))}"
            ]
        for problem in compare_outputs(old, new):
            found.append(f"cell {number}: {problem}")
    return found


def _source(cell: Cell) -> tuple[str, str, list[str]]:
    return cell["cell_type"], cell["source"], cell["metadata"].get("tags", [])


def _text(cell: Cell | None) -> str:
    return "" if cell is None else cell["source"]


def compare_outputs(stored: Cell, fresh: Cell) -> Iterator[str]:
    old, new = stored.get("outputs", []), fresh.get("outputs", [])
    if "volatile" in fresh["metadata"].get("tags", []):
        if bool(old) != bool(new):
            yield "has outputs in only one of the two executions"
        return
    before_kinds, after_kinds = ("\n".join(map(output_kind, outputs)) for outputs in (old, new))
    if before_kinds != after_kinds:
        yield f"other kinds of output\n{_diff(before_kinds, after_kinds)}"
        return
    for before, after in zip(old, new, strict=True):
        for mime, text in texts(before).items():
            if not same_text(text, texts(after).get(mime, "")):
                yield f"{mime} differs\n{_diff(text, texts(after).get(mime, ''))}"
        if image_size(before) and not same_size(image_size(before), image_size(after)):
            yield f"the image was {image_size(before)}, is now {image_size(after)} (width, height in pixels)"


def output_kind(output: Output) -> str:
    kinds = sorted(output.get("data", {}))
    return " ".join([output["output_type"], output.get("name", ""), *kinds]).strip()


def texts(output: Output) -> dict[str, str]:
    """The text of an output by type, alt texts included, binary pictures left out."""
    found = {mime: _as_text(value) for mime, value in output.get("data", {}).items() if mime != "image/png"}
    if output.get("metadata"):
        found["metadata"] = json.dumps(output["metadata"], ensure_ascii=False, sort_keys=True)
    for field in ("text", "ename", "evalue"):
        if field in output:
            found[field] = _as_text(output[field])
    return found


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "".join(value) if isinstance(value, list) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def same_text(stored: str, fresh: str) -> bool:
    """Equal but for spacing, with numbers that agree to 3 decimals."""
    if [part.split() for part in _NUMBER.split(stored)] != [part.split() for part in _NUMBER.split(fresh)]:
        return False
    pairs = zip(_NUMBER.findall(stored), _NUMBER.findall(fresh), strict=True)
    return all(old == new or abs(_value(old) - _value(new)) <= _TOLERANCE for old, new in pairs)


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def image_size(output: Output) -> tuple[int, int] | None:
    """Width and height of a PNG output, from its header."""
    image = output.get("data", {}).get("image/png")
    if not image:
        return None
    header = base64.b64decode(image[:48].replace("\n", ""))
    return int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")


def alt_texts(cells: list[Cell]) -> list[str]:
    """The alt text of every picture, in order; empty where a picture has none."""
    outputs = (output for cell in cells for output in cell.get("outputs", []) if image_size(output))
    return [output["metadata"].get("image/png", {}).get("alt", "") for output in outputs]


def same_size(stored: tuple[int, int] | None, fresh: tuple[int, int] | None, share: float = 0.05) -> bool:
    if stored is None or fresh is None:
        return stored is fresh
    return all(abs(old - new) <= share * old for old, new in zip(stored, fresh, strict=True))


def _diff(stored: str, fresh: str) -> str:
    lines = difflib.unified_diff(stored.splitlines(), fresh.splitlines(), "stored", "now", lineterm="", n=1)
    return "\n".join(f"    {line}" for line in list(lines)[:40])
