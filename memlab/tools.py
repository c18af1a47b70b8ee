"""Tools: Python functions that a model may call.

`@tool` reads a function's signature and docstring, offers them to the model as a JSON schema, and checks the
model's arguments against the signature before the function runs.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, overload

from memlab.checks import check_type
from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.messages import ToolCall, ToolResult
from memlab.trace import Event, ToolRun

_events: ContextVar[list[Event] | None] = ContextVar("memlab_events", default=None)
_FUNCTION = "a function made with def, which may call anything; its schema is that of its signature, or @tool(schema=…)"


@dataclass
class FunctionTool:
    """A function with the name, description and JSON schema under which a model sees it."""

    name: str
    description: str
    parameters: dict[str, Any]
    func: Callable[..., Any]
    _check: Callable[[Mapping[str, Any]], dict[str, Any]]

    def to_wire(self) -> dict[str, Any]:
        """The tool in the OpenAI Chat Completions format."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    async def invoke(self, arguments: str) -> str:
        """Check the JSON text `arguments`, call the function, and give its result as text.

        Raises InvalidInputError when the arguments don't fit, and whatever the function raises.
        """
        try:
            values = json.loads(arguments or "{}")
        except json.JSONDecodeError as error:
            raise InvalidInputError(
                f"the arguments of {self.name} are not JSON ({error}): {arguments!r:.200}"
            ) from None
        if not isinstance(values, dict):
            raise InvalidInputError(f"the arguments of {self.name} must be a JSON object, not {arguments!r:.200}")
        result = self.func(**self._check(values))
        if inspect.isawaitable(result):
            result = await result
        if isinstance(result, Event):
            record_event(result.kind, result.text)
            return result.text
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)


@overload
def tool(func: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, schema: Mapping[str, Any] | None = None
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    func: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a function a tool, with or without parentheses: `@tool` or `@tool(name="GetMenu")`.

    Parameters
    ----------
    name, description : what the model reads; by default the function's name and docstring.
    schema : the parameters as a JSON schema; by default made from the annotations
        (`Annotated[str, "what it means"]` adds a description). A schema given here is shown to the model as it
        is; the arguments are still checked against the function's signature.

    >>> @tool
    ... def add(a: int, b: int = 1) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> add.parameters["required"], add(2, 3)
    (['a'], 5)
    """
    if func is None:
        return lambda f: _make(f, name, description, schema)
    return _make(func, name, description, schema)


def _make(
    func: Callable[..., Any], name: str | None, description: str | None, schema: Mapping[str, Any] | None
) -> FunctionTool:
    if not inspect.isroutine(inspect.unwrap(func)):  # no class, no functools.partial, no schema
        check_type("a tool", func, what=_FUNCTION)
    check_type("name", name, str, None)
    check_type("description", description, str, None)
    check_type("schema", schema, Mapping, None)
    try:
        own_schema, check = _read_signature(func)
    except (NameError, ValueError, RuntimeError) as error:  # Python's and pydantic's
        raise InvalidTypeError(
            f"the signature of {func.__name__} can't become a JSON schema ({error!s:.200}); "
            "annotate its parameters with str, int, float, bool, list, dict or a pydantic model"
        ) from error
    text = description if description is not None else inspect.getdoc(func) or ""
    return FunctionTool(name or func.__name__, text, dict(schema or own_schema), func, check)


def _read_signature(func: Callable[..., Any]) -> tuple[dict[str, Any], Callable[..., dict[str, Any]]]:
    from typing import Annotated, get_args, get_origin, get_type_hints

    from pydantic import ConfigDict, Field, ValidationError, create_model

    hints = get_type_hints(func, include_extras=True)
    names: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(inspect.signature(func).parameters.values()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InvalidTypeError(f"{func.__name__}({parameter}): a tool's parameters are named ones")
        hint = hints.get(parameter.name, Any)
        notes = [x for x in get_args(hint)[1:] if isinstance(x, str)] if get_origin(hint) is Annotated else []
        default = ... if parameter.default is parameter.empty else parameter.default
        # As an alias a parameter may have any name: a field called "copy" or "json" would shadow pydantic's own.
        options: dict[str, Any] = {"alias": parameter.name, **({"description": notes[0]} if notes else {})}
        names[f"p{number}"] = parameter.name
        fields[f"p{number}"] = (hint, Field(default, **options))
    model = create_model(func.__name__, __config__=ConfigDict(extra="forbid"), **fields)

    def check(values: Mapping[str, Any]) -> dict[str, Any]:
        try:
            checked = model.model_validate(values)
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InvalidInputError(f"bad arguments for {func.__name__}: {faults}") from None
        return {name: getattr(checked, field) for field, name in names.items() if field in checked.model_fields_set}

    return _plain_schema(model.model_json_schema()), check


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Without pydantic's titles, which tell a model nothing and cost tokens."""
    plain = _without_titles(schema)
    return {"type": "object", "properties": {}} | {k: v for k, v in plain.items() if k != "additionalProperties"}


def _without_titles(node: Any, names: bool = False) -> Any:
    # Under "properties" the keys are the learner's own names, and "title" may be one of them.
    if isinstance(node, dict):
        kept = node.items() if names else ((k, v) for k, v in node.items() if k != "title")
        return {k: _without_titles(v, names=k in ("properties", "$defs") and not names) for k, v in kept}
    return [_without_titles(item) for item in node] if isinstance(node, list) else node


def as_tools(tools: Any) -> list[FunctionTool]:
    """One tool or function, or a list of them, as a list of tools. Raises InvalidInputError for two of one name."""
    single = isinstance(tools, str | Mapping) or not isinstance(tools, Iterable)
    items = [] if tools is None else [tools] if single else list(tools)
    made = [item if isinstance(item, FunctionTool) else tool(item) for item in items]
    names = [item.name for item in made]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidInputError(f"two tools are called {', '.join(sorted(twice))}; pass name= to @tool for one of them")
    return made


def record_event(kind: str, text: str) -> None:
    """Say, within a tool, that something happened; it counts once the tool has succeeded.

    A memory provider stores it as a record of that kind. A tool may also return an `Event`: its text is then the
    result that the model reads. Raises InvalidInputError outside of a tool that an agent runs.
    """
    events = _events.get()
    if events is None:
        raise InvalidInputError("record_event works within a tool that an agent runs; there is none now")
    events.append(Event(kind, text))


@contextmanager
def collecting_events() -> Iterator[list[Event]]:
    """Collect the events of the tools that run within, for whoever runs tools without memlab's `Agent`.

    >>> with collecting_events() as events:
    ...     record_event("order", "soup")
    >>> events
    [Event(kind='order', text='soup')]
    """
    events: list[Event] = []
    token = _events.set(events)
    try:
        yield events
    finally:
        _events.reset(token)


async def run_tool(call: ToolCall, tools: Iterable[FunctionTool]) -> tuple[ToolResult, ToolRun]:
    """Run the tool that the model asked for. What goes wrong goes to the model as an error result."""
    started, known = time.perf_counter(), {item.name: item for item in tools}
    with collecting_events() as events:
        try:
            if call.name not in known:
                raise InvalidInputError(f"there is no tool {call.name!r}; the tools are {', '.join(known) or 'none'}")
            text, failed = await known[call.name].invoke(call.arguments), False
        except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the model must hear of it
            text, failed = f"Error: {error}" if str(error) else f"Error: {type(error).__name__}", True
    run = ToolRun(
        call.name, call.arguments, text, failed, time.perf_counter() - started, () if failed else tuple(events)
    )
    return ToolResult(call.call_id, text, failed), run
