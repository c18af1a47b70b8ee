"""The types of arguments: a value of a wrong type is refused everywhere in the same words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from memlab.errors import InvalidTypeError

_WORDS: dict[Any, str] = {
    str: "a string",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    Mapping: "a dictionary",
    Callable: "a function",
    None: "None",
}


def check_type(name: str, value: object, *kinds: Any, what: str = "") -> None:
    """Refuse a value that is of none of `kinds`, where None stands for itself.

    A float is any number and an int any whole one, NumPy's too; True and False are neither. `what` says what to
    pass, where the kinds alone don't tell. Raises InvalidTypeError.

    >>> check_type("timeout", 2, float, None)
    >>> check_type("timeout", "2", float, None)
    Traceback (most recent call last):
        ...
    memlab.errors.InvalidTypeError: timeout is '2' (str); pass a number or None
    """
    if (None if value is None else type(value)) in kinds:  # mostly so, and fast
        return
    if not any(fits(value, kind) for kind in kinds):
        allowed = what or " or ".join(_WORDS.get(kind) or f"a {kind.__name__}" for kind in kinds)
        raise InvalidTypeError(f"{name} is {value!r:.80} ({type(value).__name__}); pass {allowed}")


def fits(value: object, kind: Any) -> bool:
    """Whether a value is of that kind, in the sense of `check_type`."""
    if kind is None:
        return value is None
    is_bool = type(value).__name__ == "bool"  # NumPy's has the same name
    if kind is bool:
        return is_bool
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not is_bool
    return isinstance(value, kind)


def check_fields(given: Any) -> None:
    """Refuse a dataclass object with a field that is of another type than its annotation says."""
    cls: Any = type(given)
    for name, kinds in _kinds_of(cls).items():
        check_type(name, getattr(given, name), *kinds)


@lru_cache(maxsize=32)
def _kinds_of(cls: type) -> dict[str, tuple[Any, ...]]:
    """What each field may be: `float | None` is (float, None), `Mapping[str, str]` is (Mapping,)."""
    hints = {name: _alternatives(hint) for name, hint in get_type_hints(cls).items()}
    return {name: kinds for name, kinds in hints.items() if all(k is None or isinstance(k, type) for k in kinds)}


def _alternatives(hint: Any) -> tuple[Any, ...]:
    either = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(None if each is NoneType else get_origin(each) or each for each in either)
