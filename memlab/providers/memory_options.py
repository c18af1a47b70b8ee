"""What a `ChatHistoryMemoryProvider` is told: whose memories (`State`), and how to search, store and speak."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memlab.checks import check_fields, check_type, fits
from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.messages import Message
from memlab.ranking import RANKS
from memlab.session import register_state_type
from memlab.stores.base import EVERYONE, MemoryScope, SearchScope, check_search_scope

MessageFilter = Callable[[list[Message]], list[Message]]


class SearchTime:
    """When memories are searched: before every run, or when the model asks for it through a tool."""

    BEFORE_AI_INVOKE = "before_ai_invoke"
    ON_DEMAND_FUNCTION_CALLING = "on_demand_function_calling"


@dataclass(frozen=True)
class State:
    """The scopes of one session: what is stored is stamped with the first, searched is in the second.

    Without a search scope, the storage scope is searched. Raises InvalidInputError for a search scope that sets a
    field which the storage scope never stamps: it could find nothing, ever.
    """

    storage_scope: MemoryScope
    search_scope: SearchScope | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.storage_scope, MemoryScope):
            raise InvalidTypeError(f"storage_scope is {self.storage_scope!r}; it must be a MemoryScope")
        missing = set(check_search_scope(self.searched)) - set(self.storage_scope.set_fields())
        if missing:
            raise InvalidInputError(
                f"the search scope sets {', '.join(sorted(missing))}, which the storage scope leaves out: "
                "no stored record carries it, so nothing would be found; set it in both or in neither"
            )

    @property
    def searched(self) -> SearchScope:
        """The scope of searches."""
        return self.storage_scope if self.search_scope is None else self.search_scope

    def to_dict(self) -> dict[str, Any]:
        """The scopes as JSON values."""
        search = self.search_scope
        return {
            "storage_scope": self.storage_scope.set_fields(),
            "search_scope": "EVERYONE" if search is EVERYONE else search and search.set_fields(),  # type: ignore[union-attr]
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> State:
        """The opposite of `to_dict`."""
        search = data.get("search_scope")
        if search is not None:
            search = EVERYONE if search == "EVERYONE" else MemoryScope(**search)
        return cls(MemoryScope(**data["storage_scope"]), search)


register_state_type(State, type_id="memlab.memory_state")


def external_only(messages: list[Message]) -> list[Message]:
    """The default filter of inputs: what the caller said, and nothing that a provider added."""
    return [message for message in messages if message.source.kind == "external"]


def all_messages(messages: list[Message]) -> list[Message]:
    """The default filter of answers: all of them."""
    return messages


@dataclass
class ChatHistoryMemoryProviderOptions:
    """How a memory provider searches, stores and speaks.

    Parameters
    ----------
    search_time : `SearchTime.BEFORE_AI_INVOKE` or `SearchTime.ON_DEMAND_FUNCTION_CALLING`.
    function_tool_name, function_tool_description : of the tool that searches on demand.
    context_prompt : the heading of the message with the memories.
    max_results, threshold : at most so many memories, with at least this cosine similarity (None: any).
    rank : how memories are ranked, one of `memlab.ranking.RANKS`; "newest" takes the latest whatever they say.
    where : only such records, for example `{"role": "assistant"}` or `{"kind": "order"}`.
    search_input_message_filter : which messages make the query; by default the caller's.
    storage_input_request_message_filter : which request messages are stored; by default the caller's.
    storage_input_response_message_filter : which answers are stored; by default all.
    record_template : a memory as the model reads it: {text}, {role}, {author}, {date}.
    store_turns_as_one : one record for a turn, instead of one for each message.
    deduplicate : a text that the scope holds already, in the same role, is stored once, with its latest time. It holds
        for what is stored from then on, and not for events: an order placed twice is two orders.
    exclude_loaded : leave out records of messages that the history sends in this run anyway.
    quote_memories : each memory as one JSON string, so that its text can't look like a heading or an order.
    timeout : seconds a search or a write may take; None for no limit.
    clock : the time that is stored with a record; to be replaced where a month must pass in seconds.
    enable_sensitive_telemetry_data : let logs show ids, queries and texts; `redactor` rewrites them otherwise.
    state_key : the provider's source_id; by default its class name.
    """

    search_time: str = SearchTime.BEFORE_AI_INVOKE
    function_tool_name: str = "Search"
    function_tool_description: str = (
        "Allows searching for related previous chat history to help answer the user question."
    )
    context_prompt: str = "## Memories\nConsider the following memories when answering user questions:"
    max_results: int = 3
    threshold: float | None = None
    rank: str = "cosine"
    where: Mapping[str, str] = field(default_factory=dict)
    search_input_message_filter: MessageFilter = external_only
    storage_input_request_message_filter: MessageFilter = external_only
    storage_input_response_message_filter: MessageFilter = all_messages
    record_template: str = "{text}"
    store_turns_as_one: bool = False
    deduplicate: bool = False
    exclude_loaded: bool = False
    quote_memories: bool = False
    timeout: float | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    enable_sensitive_telemetry_data: bool = False
    redactor: Callable[[str], str] | None = None
    state_key: str | None = None

    def __post_init__(self) -> None:
        times = (SearchTime.BEFORE_AI_INVOKE, SearchTime.ON_DEMAND_FUNCTION_CALLING)
        if self.search_time not in times:
            raise InvalidInputError(f"search_time is {self.search_time!r}; it must be one of {', '.join(times)}")
        if not fits(self.max_results, int) or self.max_results <= 0:
            raise InvalidInputError(f"max_results is {self.max_results!r}; pass a whole number of at least 1")
        if self.rank not in RANKS:
            raise InvalidInputError(f"rank is {self.rank!r}; it must be one of {', '.join(RANKS)}")
        self._check_threshold()
        check_fields(self)
        if unknown := set(self.where) - {"role", "kind"}:
            raise InvalidInputError(f"where has {', '.join(sorted(map(str, unknown)))}; it filters by role and kind")
        for name, value in self.where.items():
            check_type(f"where[{name!r}]", value, str)
        if self.timeout is not None and self.timeout <= 0:
            raise InvalidInputError(f"timeout is {self.timeout} seconds; it must be more than 0, or None")
        try:
            self.record_template.format(**dict.fromkeys(_TEMPLATE_FIELDS, ""))
        except (AttributeError, LookupError, ValueError) as error:
            raise InvalidInputError(
                f"record_template {self.record_template!r} can't be filled ({error!r}); "
                f"it may use {', '.join(f'{{{name}}}' for name in _TEMPLATE_FIELDS)}"
            ) from None

    def _check_threshold(self) -> None:
        if self.threshold is not None and (not fits(self.threshold, float) or math.isnan(self.threshold)):
            raise InvalidInputError(
                f"threshold is {self.threshold!r}; pass a number, such as 0.3, or None for any similarity"
            )


_TEMPLATE_FIELDS = ("text", "role", "author", "date")
SEARCH_SCHEMA = {"type": "object", "properties": {"userQuestion": {"type": "string"}}, "required": ["userQuestion"]}
