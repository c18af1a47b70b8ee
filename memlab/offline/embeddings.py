"""POST /v1/embeddings."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from memlab.errors import ConfigurationError
from memlab.offline.api_errors import ApiError, missing, too_many, wrong_type, wrong_value
from memlab.offline.encoders import ENCODERS, Encoder, get_encoder
from memlab.offline.models import read_model_name
from memlab.tokens import count_text, get_encoding

MAX_TEXTS = 2048
MAX_TOKENS_PER_TEXT = 8192
MAX_TOKENS_PER_REQUEST = 300_000
MAX_DIMENSIONS = 16_384


def create_embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """Embed the request's texts or token arrays; the reply's vectors are in the order of the input."""
    model = read_model_name(body, list(ENCODERS))
    encoding_format = _read_encoding_format(body)
    dimensions = _read_dimensions(body, get_encoder(model))
    texts, tokens = _read_input(body, model)
    try:
        vectors = get_encoder(model).embed(texts, dimensions)
    except ConfigurationError as error:  # the extra is not installed
        raise ApiError(str(error), status=404, code="model_not_found") from error
    return {
        "object": "list",
        "data": [_item(i, vector, encoding_format) for i, vector in enumerate(vectors)],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _item(index: int, vector: np.ndarray, encoding_format: str) -> dict[str, Any]:
    if encoding_format == "base64":
        embedding: Any = base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    else:
        embedding = vector.tolist()
    return {"object": "embedding", "index": index, "embedding": embedding}


def _read_encoding_format(body: dict[str, Any]) -> str:
    value = body.get("encoding_format")
    if value not in (None, "float", "base64"):
        raise wrong_value("encoding_format", value, ["float", "base64"])
    return value or "float"


def _read_dimensions(body: dict[str, Any], encoder: Encoder) -> int | None:
    value = body.get("dimensions")
    if value is None:
        return None
    if type(value) is not int:
        raise wrong_type("dimensions", "an integer", value)
    if not encoder.any_dimensions:
        raise ApiError("This model does not support specifying dimensions.")
    if not 1 <= value <= MAX_DIMENSIONS:
        raise ApiError(
            f"Invalid value for 'dimensions' = {value}. Must be between 1 and {MAX_DIMENSIONS}.",
            param="dimensions",
            code="invalid_value",
        )
    return value


def _read_input(body: dict[str, Any], model: str) -> tuple[list[str], int]:
    """The texts to embed, and the number of tokens in them."""
    items = _as_list(body.get("input"))
    if not all(_is_text(item) or _is_token_array(item) for item in items):
        raise _invalid_input()
    counts = [count_text(item, model) if isinstance(item, str) else len(item) for item in items]
    _check_lengths(counts)
    return [item if isinstance(item, str) else _decode(item) for item in items], sum(counts)


def _as_list(value: Any) -> list[Any]:
    """A string or a token array is a list of one."""
    if value is None:
        raise missing("input")
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise wrong_type("input", "a string or an array", value)
    items = [value] if value and type(value[0]) is int else value
    if len(items) > MAX_TEXTS:
        raise too_many("input", MAX_TEXTS, len(items))
    if not items:
        raise _invalid_input()
    return items


def _is_text(item: Any) -> bool:
    return isinstance(item, str) and item != ""


def _is_token_array(item: Any) -> bool:
    return isinstance(item, list) and bool(item) and all(type(token) is int for token in item)


def _invalid_input() -> ApiError:
    return ApiError(
        "'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference."
        " Texts and token arrays must not be empty; send a blank text as a space."
    )


def _check_lengths(counts: list[int]) -> None:
    longest = max(counts)
    if longest > MAX_TOKENS_PER_TEXT:
        raise ApiError(
            f"This model's maximum context length is {MAX_TOKENS_PER_TEXT} tokens, however you requested "
            f"{longest} tokens ({longest} in your prompt; 0 for the completion). Please reduce your prompt; "
            "or completion length."
        )
    if sum(counts) > MAX_TOKENS_PER_REQUEST:
        raise ApiError(
            f"Requested {sum(counts)} tokens, max {MAX_TOKENS_PER_REQUEST} tokens per request",
            kind="max_tokens_per_request",
            code="max_tokens_per_request",
        )


def _decode(tokens: list[int]) -> str:
    """The text of a token array: embedding models read cl100k_base."""
    encoding = get_encoding("cl100k_base")
    try:
        if min(tokens) < 0 or max(tokens) > encoding.max_token_value:
            raise KeyError(max(tokens))
        return encoding.decode(tokens)
    except KeyError as error:
        raise _invalid_input() from error
