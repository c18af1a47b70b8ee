"""The models that the endpoint serves; any other name is unknown."""

from __future__ import annotations

from typing import Any

from memlab.offline.api_errors import ApiError, missing, wrong_type
from memlab.offline.encoders import ENCODERS, is_installed

CHAT_WINDOWS = {"classroom-8k": 8192, "classroom-32k": 32768, "classroom-128k": 131072}
_RELEASED = 1764547200  # models need a creation date; this one says nothing


def list_models() -> dict[str, Any]:
    """The body of GET /v1/models."""
    return {"object": "list", "data": [get_model(name) for name in _names()]}


def get_model(name: str) -> dict[str, Any]:
    """The body of GET /v1/models/{name}."""
    if name not in _names():
        raise unknown_model(name, _names())
    return {"id": name, "object": "model", "created": _RELEASED, "owned_by": "memlab"}


def _names() -> list[str]:
    """What runs here: an encoder whose package is missing is not offered."""
    return [*CHAT_WINDOWS, *(name for name in ENCODERS if is_installed(name))]


def read_model_name(body: dict[str, Any], allowed: list[str]) -> str:
    """The `model` of a request, which must be one of `allowed`."""
    model = body.get("model")
    if model is None or model == "":
        raise ApiError("you must provide a model parameter")
    if not isinstance(model, str):
        raise wrong_type("model", "a string", model)
    if model not in allowed:
        raise unknown_model(model, allowed)
    return model


def unknown_model(name: str, allowed: list[str]) -> ApiError:
    """The API's 404, and what there is instead."""
    return ApiError(
        f"The model `{name[:100]}` does not exist or you do not have access to it. "
        f"This offline endpoint serves: {', '.join(allowed)}.",
        status=404,
        code="model_not_found",
    )


def read_object(value: Any, param: str) -> dict[str, Any]:
    """A required JSON object."""
    if value is None:
        raise missing(param)
    if not isinstance(value, dict):
        raise wrong_type(param, "an object", value)
    return value
