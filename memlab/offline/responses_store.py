"""The responses that the endpoint keeps, so that a later request can go on from one of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from memlab.offline.api_errors import ApiError


@dataclass(frozen=True)
class StoredResponse:
    """A response as it was answered, and the items of its whole conversation: earlier ones, input and output."""

    response: dict[str, Any]
    items: tuple[dict[str, Any], ...]


class ResponseStore:
    """The newest `limit` responses by id; the one that was used least recently goes first. Thread-safe."""

    def __init__(self, limit: int = 1000) -> None:
        self.limit = limit
        self._kept: OrderedDict[str, StoredResponse] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, stored: StoredResponse) -> None:
        """Keep a response."""
        with self._lock:
            self._kept[stored.response["id"]] = stored
            self._kept.move_to_end(stored.response["id"])
            if len(self._kept) > self.limit:
                self._kept.popitem(last=False)

    def get(self, response_id: str) -> StoredResponse | None:
        """The response of that id, or None."""
        with self._lock:
            if response_id in self._kept:
                self._kept.move_to_end(response_id)
            return self._kept.get(response_id)

    def delete(self, response_id: str) -> bool:
        """Forget a response; False when it isn't there. Conversations that go on from it keep its items."""
        with self._lock:
            return self._kept.pop(response_id, None) is not None


STORE = ResponseStore()


def get_response(response_id: str) -> dict[str, Any]:
    """The body of GET /v1/responses/{id}."""
    stored = STORE.get(response_id)
    if stored is None:
        raise _not_found(response_id)
    return stored.response


def delete_response(response_id: str) -> dict[str, Any]:
    """The body of DELETE /v1/responses/{id}."""
    if not STORE.delete(response_id):
        raise _not_found(response_id)
    return {"id": response_id, "object": "response", "deleted": True}


def previous_items(response_id: str) -> tuple[dict[str, Any], ...]:
    """The conversation up to an earlier response, its own output included."""
    stored = STORE.get(response_id)
    if stored is None:
        raise ApiError(
            f"Previous response with id '{response_id[:100]}' not found. This offline endpoint keeps its newest "
            f"{STORE.limit:,} stored responses, in memory, until its process ends.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    return stored.items


def _not_found(response_id: str) -> ApiError:
    return ApiError(f"Response with id '{response_id[:100]}' not found.", status=404)
