"""A session: which conversation this is, and what each provider keeps for it.

An `AgentSession` is small and serialisable: two ids and a `state` dictionary, with one entry for each provider,
under the provider's `source_id`. The agent and its providers hold nothing of a session.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from memlab.checks import check_type
from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.markup import session_html
from memlab.messages import Message, clean_text

T = TypeVar("T")

_encoders: dict[type, tuple[str, Callable[[Any], Mapping[str, Any]]]] = {}
_decoders: dict[str, Callable[[Mapping[str, Any]], Any]] = {}
_PLAIN = "dict"
_DEEPEST = 200  # levels of dictionaries, lists and registered objects: far more than is meant, far less than crashes


def register_state_type(
    cls: type[T],
    *,
    type_id: str | None = None,
    encoder: Callable[[T], Mapping[str, Any]] | None = None,
    decoder: Callable[[Mapping[str, Any]], T] | None = None,
) -> None:
    """Let objects of `cls` live in `session.state` and survive `to_dict` and `from_dict`.

    `type_id` (by default the lower-case class name) is stored beside the value. Without `encoder` and `decoder`,
    the class needs `to_dict()` and `from_dict()`. Raises InvalidInputError when neither is there, or when the
    type id belongs to another class.
    """
    check_type("cls", cls, type, what="the class, not an object of it")
    name = type_id or cls.__name__.lower()
    encode = encoder or getattr(cls, "to_dict", None)
    decode = decoder or getattr(cls, "from_dict", None)
    if encode is None or decode is None:
        raise InvalidInputError(f"{cls.__name__} has no to_dict()/from_dict(); pass encoder= and decoder=")
    owners = {used: owner for owner, (used, _) in _encoders.items() if owner is not cls} | {_PLAIN: dict}
    taken = owners.get(name)
    if taken is not None:
        raise InvalidInputError(f"state type id {name!r} belongs to {taken.__name__}; pass another type_id=")
    _encoders[cls] = (name, encode)
    _decoders[name] = decode


class AgentSession:
    """One conversation.

    Parameters
    ----------
    session_id : its id; a new one when not given.
    service_session_id : the id under which a service keeps the history, where it does.

    `state` is a dictionary of JSON values, messages and registered types, shared by all providers.

    >>> session = AgentSession(session_id="lesson")
    >>> session.state["user_id"] = "alice"
    >>> AgentSession.from_dict(session.to_dict()).state
    {'user_id': 'alice'}
    """

    def __init__(self, *, session_id: str | None = None, service_session_id: str | None = None) -> None:
        _check_id("session_id", session_id)
        _check_id("service_session_id", service_session_id)
        self._session_id = session_id or str(uuid.uuid4())
        self.service_session_id = service_session_id
        self.state: dict[str, Any] = {}
        self.holder: Any = None  # the run that uses the session now; never stored
        self._lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @property
    def session_id(self) -> str:
        """The id of this conversation."""
        return self._session_id

    @property
    def lock(self) -> asyncio.Lock:
        """Held while a run uses the session, so that two runs at once are served in call order."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:
            self._lock = (loop, asyncio.Lock())
        return self._lock[1]

    def to_dict(self) -> dict[str, Any]:
        """The session as JSON values.

        Raises InvalidTypeError naming the path of a value that JSON can't hold, and InvalidInputError naming that of
        one that holds itself or is nested too deeply.
        """
        return {
            "type": "session",
            "session_id": self._session_id,
            "service_session_id": self.service_session_id,
            "state": encode_state(self.state, "state"),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AgentSession:
        """The session of `to_dict`. Raises InvalidInputError naming what is missing or wrong."""
        if not isinstance(data, Mapping):
            raise InvalidInputError(f"a stored session is a dictionary, not {type(data).__name__}")
        if data.get("type", "session") != "session":
            raise InvalidInputError(f"type is {data['type']!r}; a stored session says 'session'")
        unknown = set(data) - {"type", "session_id", "service_session_id", "state"}
        if unknown:
            raise InvalidInputError(f"a stored session has no field {', '.join(sorted(map(repr, unknown)))}")
        if not data.get("session_id"):
            raise InvalidInputError("session_id is missing: the stored session says not which conversation it is")
        state = data.get("state", {})
        if not isinstance(state, Mapping):
            raise InvalidInputError(f"state is {type(state).__name__}; it must be a dictionary")
        session = cls(session_id=data["session_id"], service_session_id=data.get("service_session_id"))
        session.state = decode_state(state, "state")
        return session

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "holder": None, "_lock": None}  # a lock belongs to its event loop

    def __repr__(self) -> str:
        return f"AgentSession(session_id={self._session_id!r}, state={sorted(self.state)})"

    def _repr_html_(self) -> str:
        return session_html(self)


def _check_id(name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise InvalidInputError(f"{name} is {value!r}; it must be a non-empty string, or None")
    if value is not None and clean_text(value) != value:
        raise InvalidInputError(f"{name} {value!r} holds a lone surrogate, which no file and no database keeps")


def encode_state(value: Any, path: str, around: tuple[int, ...] = ()) -> Any:
    """`value` as JSON values; a registered type becomes a dictionary with its type id under "type".

    A plain dictionary that only looks like one is wrapped, so that it comes back as what it was. `around` holds the
    ids of the values that this one stands in.
    """
    if id(value) in around:
        raise InvalidInputError(
            f"{path:.200} holds what it stands in, a circle; store the id of the other part instead"
        )
    inside = (*around, id(value))
    if type(value) in _encoders:
        name, encode = _encoders[type(value)]
        fields = {key: item for key, item in _encoded(encode, value, path).items() if key != "type"}
        return {**encode_state(fields, path, inside), "type": name}
    if isinstance(value, dict):
        if bad := [key for key in value if not isinstance(key, str)]:
            raise InvalidTypeError(f"{path} has the key {bad[0]!r}; keys of session state must be strings")
        _check_depth(path, len(around))
        plain = {key: encode_state(item, f"{path}.{key}", inside) for key, item in value.items()}
        looks_registered = isinstance(value.get("type"), str) and value["type"] in {_PLAIN, *_decoders}
        return {"type": _PLAIN, "items": plain} if looks_registered else plain
    if isinstance(value, list | tuple):
        _check_depth(path, len(around))
        return [encode_state(item, f"{path}[{i}]", inside) for i, item in enumerate(value)]
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidTypeError(
            f"{path} holds {value!r:.80} of type {type(value).__name__}, which JSON can't keep; "
            "store JSON values, or call register_state_type for the class"
        ) from None
    return value


def _encoded(encode: Callable[[Any], Mapping[str, Any]], value: Any, path: str) -> Mapping[str, Any]:
    try:
        return encode(value)
    except RecursionError:
        raise _too_deep(path) from None


def _check_depth(path: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise _too_deep(path)


def _too_deep(path: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path:.200}{'…' if len(path) > 200 else ''} is nested more than {_DEEPEST} levels deep, or without end; "
        "store a flat list or a text instead"
    )


def decode_state(value: Any, path: str, depth: int = 0) -> Any:
    """The opposite of `encode_state`. A dictionary whose "type" is no registered id stays a dictionary."""
    if isinstance(value, Mapping | list):
        _check_depth(path, depth)
    if isinstance(value, Mapping):
        name = value.get("type") if isinstance(value.get("type"), str) else None
        if name == _PLAIN and set(value) == {"type", "items"} and isinstance(value["items"], Mapping):
            return {key: decode_state(item, f"{path}.{key}", depth + 1) for key, item in value["items"].items()}
        plain = {key: decode_state(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
        try:
            return _decoders[name](plain) if name in _decoders else plain
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"{path} can't be read as {value['type']!r}: {error}") from error
    if isinstance(value, list):
        return [decode_state(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    return value


register_state_type(Message, type_id="message")
