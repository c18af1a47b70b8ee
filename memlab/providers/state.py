"""A provider's own, typed part of a session's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.session import AgentSession

T = TypeVar("T")

_KEY = "state"


class ProviderSessionState(Generic[T]):
    """Makes a provider's state once for each session and keeps it in `session.state[state_key]`.

    Parameters
    ----------
    state_initializer : makes the first state from the session, for example from `session.state["user_id"]`.
        What it raises is raised.
    state_key : the provider's `source_id`.
    state_type : if given, anything else from the initializer is an InvalidTypeError.

    The class of the state must be JSON-native or registered with `register_state_type`.

    >>> from memlab import AgentSession
    >>> state = ProviderSessionState(lambda session: {"seen": 0}, "counter")
    >>> session = AgentSession()
    >>> state.get_or_initialize(session)
    {'seen': 0}
    >>> state.save(session, {"seen": 1})
    >>> state.get_or_initialize(session)
    {'seen': 1}
    """

    def __init__(
        self,
        state_initializer: Callable[[AgentSession], T],
        state_key: str,
        state_type: type[T] | None = None,
    ) -> None:
        if not callable(state_initializer):
            raise InvalidTypeError(f"state_initializer is {state_initializer!r}; pass a function of the session")
        if not isinstance(state_key, str) or not state_key.strip():
            raise InvalidInputError(f"state_key is {state_key!r}; it must be a non-empty string")
        self.state_key = state_key
        self._initialize = state_initializer
        self._type = state_type

    def get_or_initialize(self, session: AgentSession) -> T:
        """The state of `session`, made now if it has none yet."""
        bag = self._bag(session)
        if _KEY not in bag:
            bag[_KEY] = self._checked(self._initialize(session))
        return self._checked(bag[_KEY])

    def save(self, session: AgentSession, state: T) -> None:
        """Put a new state in the place of the old one."""
        self._bag(session)[_KEY] = self._checked(state)

    def _bag(self, session: AgentSession) -> dict[str, Any]:
        bag = session.state.setdefault(self.state_key, {})
        if not isinstance(bag, dict):
            raise InvalidTypeError(
                f"session.state[{self.state_key!r}] is {type(bag).__name__}; it must be a dictionary of this provider's"
            )
        return bag

    def _checked(self, state: T) -> T:
        if self._type is not None and not isinstance(state, self._type):
            raise InvalidTypeError(
                f"the state of {self.state_key} is a {type(state).__name__}; "
                f"its state_initializer must return a {self._type.__name__}"
            )
        return state
