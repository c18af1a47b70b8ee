"""One handler for the whole API, behind the in-process transport and the port alike."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from memlab.offline.api_errors import ApiError
from memlab.offline.chat import create_chat_completion
from memlab.offline.embeddings import create_embeddings
from memlab.offline.models import get_model, list_models
from memlab.offline.responses import create_response
from memlab.offline.responses_store import delete_response, get_response

Body = bytes | Iterator[bytes]


@dataclass(frozen=True)
class Reply:
    """An HTTP response. `body` is the whole of it, or an iterator over the events of a stream."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: Body = b""


# A route reads the JSON body and an id made from the request, and returns JSON or a stream of events.
Route = Callable[[dict[str, Any], str], "dict[str, Any] | Iterator[bytes]"]
_ROUTES: dict[str, tuple[str, Route]] = {
    "/v1/models": ("GET", lambda body, request_id: list_models()),
    "/v1/embeddings": ("POST", lambda body, request_id: create_embeddings(body)),
    "/v1/chat/completions": ("POST", create_chat_completion),
    "/v1/responses": ("POST", create_response),
}
PATHS = tuple(_ROUTES)


def dispatch(method: str, path: str, headers: Mapping[str, str], body: bytes, *, api_key: str | None = None) -> Reply:
    """Answer one request as the OpenAI API would.

    Parameters: the HTTP `method`, the `path` (from `/v1/`; a query string is ignored), the `headers`, and the
    `body` as sent. With an `api_key`, requests without `Authorization: Bearer <api_key>` get a 401.

    Whatever is wrong with the request is told in the reply; nothing is raised for it.

    >>> dispatch("GET", "/v1/models/classroom-8k", {}, b"").status
    200
    >>> dispatch("POST", "/v1/chat/completions", {}, b"not JSON").status
    400
    """
    try:
        check_key(headers, api_key)
        return _to_reply(_answer(method.upper(), path.partition("?")[0], body))
    except ApiError as error:
        return error_reply(error)
    except RecursionError:
        return error_reply(ApiError("The JSON body of your request is nested too deeply."))


def error_reply(error: ApiError) -> Reply:
    """The reply that tells an error."""
    return Reply(error.status, {"content-type": "application/json", **error.headers}, error.to_json())


def check_key(headers: Mapping[str, str], api_key: str | None) -> None:
    """Raise the API's 401 unless the request carries the key. Neither key is ever repeated."""
    if not api_key:
        return
    given = next((value for name, value in headers.items() if name.lower() == "authorization"), "")
    if not given:
        raise ApiError(
            "You didn't provide an API key. You need to provide your API key in an Authorization header "
            "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
            status=401,
        )
    if not hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {api_key}".encode()):
        raise ApiError("Incorrect API key provided.", status=401, code="invalid_api_key")


def _answer(method: str, path: str, body: bytes) -> dict[str, Any] | Iterator[bytes]:
    path = path.rstrip("/") or "/"
    if path.startswith("/v1/models/"):
        _check_method(method, "GET", path)
        return get_model(unquote(path.removeprefix("/v1/models/")))
    if path.startswith("/v1/responses/") and path.count("/") == 3:
        _check_method(method, "DELETE" if method == "DELETE" else "GET", path)
        stored = delete_response if method == "DELETE" else get_response
        return stored(unquote(path.removeprefix("/v1/responses/")))
    if path not in _ROUTES:
        raise _unknown_path(method, path)
    allowed, route = _ROUTES[path]
    _check_method(method, allowed, path)
    return route(_read_json(body) if allowed == "POST" else {}, hashlib.sha256(body).hexdigest())


def _check_method(method: str, allowed: str, path: str) -> None:
    if method != allowed:
        raise ApiError(
            f"Not allowed to {method} on {path[:200]}. (HINT: Perhaps you meant to use {allowed}?)",
            status=405,
            code="method_not_supported",
            headers={"allow": allowed},
        )


def _unknown_path(method: str, path: str) -> ApiError:
    served = ", ".join(f"{allowed} {known}" for known, (allowed, _) in _ROUTES.items())
    hint = "" if path.startswith("/v1") else " The base URL of a client must end in /v1."
    return ApiError(
        f"Invalid URL ({method} {path[:200]}). This offline endpoint serves {served}.{hint}",
        status=404,
        code="unknown_url",
    )


def _read_json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body.decode("utf-8"), parse_float=_read_float, parse_constant=_read_float)
        if b"\\ud" in body or b"\\uD" in body:
            value = json.loads(_without_surrogates(value))
    except ValueError as error:
        raise ApiError(
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using "
            "your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not "
            "valid JSON.)"
        ) from error
    if not isinstance(value, dict):
        raise ApiError("The JSON body of a request must be an object.")
    return value


def _read_float(text: str) -> float:
    """NaN, Infinity and 1e999 are no JSON numbers, though Python reads them."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number in JSON")
    return number


def _without_surrogates(value: Any) -> str:
    """Half of a surrogate pair can't be written as UTF-8: it becomes U+FFFD."""
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _to_reply(result: dict[str, Any] | Iterator[bytes]) -> Reply:
    if isinstance(result, dict):
        return Reply(200, {"content-type": "application/json"}, _to_json(result))
    return Reply(200, {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}, result)


def _to_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
