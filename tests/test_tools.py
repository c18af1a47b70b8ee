"""Tools: the schema a model sees, the check of its arguments, and what goes back to it."""

import functools
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from memlab import FunctionTool, InvalidInputError, InvalidTypeError, ToolCall, tool
from memlab.tools import as_tools, collecting_events, record_event, run_tool
from tests.support import stable_id


@tool(name="PlaceOrder", description="外卖下单")
def place_order(orderItems: dict[str, int], note: Annotated[str, "for the cook"] = "") -> list[dict]:  # noqa: N803
    """Ignored: a description is given."""
    return [{"dish": dish, "quantity": quantity} for dish, quantity in orderItems.items()]


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def test_the_schema_is_that_of_the_signature():
    assert place_order.to_wire() == {
        "type": "function",
        "function": {
            "name": "PlaceOrder",
            "description": "外卖下单",
            "parameters": {
                "type": "object",
                "properties": {
                    "orderItems": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "note": {"type": "string", "description": "for the cook", "default": ""},
                },
                "required": ["orderItems"],
            },
        },
    }
    assert (add.name, add.description) == ("add", "Add two numbers.")


def test_a_tool_without_parameters_has_an_empty_schema():
    @tool(name="GetMenu", description="提取外卖菜单")
    def menu():
        return []

    assert menu.parameters == {"type": "object", "properties": {}}


def test_a_given_schema_is_shown_as_it_is():
    schema = {"type": "object", "properties": {"userQuestion": {"type": "string"}}, "required": ["userQuestion"]}
    assert tool(schema=schema)(lambda userQuestion: "").parameters == schema  # noqa: N803


def test_parameters_may_have_any_name_and_a_described_field():
    @tool
    def book(title: str, copy: int, json: Annotated[str, Field(description="as text", max_length=3)] = "{}") -> str:
        return f"{title} {copy} {json}"

    assert list(book.parameters["properties"]) == ["title", "copy", "json"]
    assert book.parameters["properties"]["json"]["description"] == "as text"


async def test_arguments_become_what_the_annotations_say():
    class Dish(BaseModel):
        name: str
        title: str = "-"

    @tool
    def order(dish: Dish, size: Literal["small", "large"] = "small") -> str:
        return f"{size} {dish.name} {dish.title}"

    assert await order.invoke('{"dish": {"name": "番茄炒蛋"}, "size": "large"}') == "large 番茄炒蛋 -"
    assert order.parameters["$defs"]["Dish"]["properties"].keys() == {"name", "title"}


@pytest.mark.parametrize(
    ("value", "text"),
    [("plain", "plain"), (None, "null"), ({"菜": 1}, '{"菜": 1}'), ([1, 2], "[1, 2]"), (1.5, "1.5"), (True, "true")],
)
async def test_a_result_is_text_or_json(value, text):
    assert await tool(name="f")(lambda: value).invoke("{}") == text


async def test_coroutine_functions_and_methods_are_tools():
    class Kitchen:
        async def cook(self, dish: str) -> str:
            """Cook it."""
            return f"{dish} is ready"

    assert await tool(Kitchen().cook).invoke('{"dish": "soup"}') == "soup is ready"


def test_a_tool_is_still_a_function():
    assert (add(2, 3), place_order({"汤": 1})) == (5, [{"dish": "汤", "quantity": 1}])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("not JSON", "not JSON"),
        ("[1]", "JSON object"),
        ("{}", "a: Field required"),
        ('{"a": "many"}', "a: Input should be a valid integer"),
        ('{"a": 1, "c": 2}', "c: Extra inputs"),
        ('{"a": 1, "b": null}', "b: "),
    ],
)
async def test_bad_arguments_are_an_error_that_names_them_and_the_function_is_not_called(arguments, named):
    result, run = await run_tool(ToolCall("1", "add", arguments), [add])
    assert (result.is_error, run.is_error, run.result) == (True, True, result.result)
    assert named in result.result
    assert "add" in result.result


async def test_empty_arguments_are_no_arguments():
    result, _ = await run_tool(ToolCall("1", "now", ""), [tool(name="now")(lambda: "noon")])
    assert (result.result, result.is_error, result.call_id) == ("noon", False, "1")


async def test_an_unknown_tool_is_an_error_that_names_the_known_ones():
    result, _ = await run_tool(ToolCall("1", "multiply"), [add])
    assert result.is_error
    assert "'multiply'" in result.result
    assert "add" in result.result


@pytest.mark.parametrize(
    ("error", "text"),
    [(RuntimeError("the kitchen is closed"), "Error: the kitchen is closed"), (RuntimeError(), "Error: RuntimeError")],
)
async def test_an_exception_is_an_error_result(error, text):
    def fail():
        raise error

    result, run = await run_tool(ToolCall("1", "fail"), as_tools(fail))
    assert (result.result, result.is_error, run.is_error) == (text, True, True)


class Kitchen:
    def __call__(self, dish: str) -> str:
        return dish


@pytest.mark.parametrize("way", [tool, as_tools, lambda given: as_tools([given]), tool(name="cook")])
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("GetMenu", r"'GetMenu' \(str\)"),
        (5, r"5 \(int\)"),
        (functools.partial(add.func, 1), r"functools\.partial.*\(partial\)"),
        ({"type": "function", "function": {"name": "add"}}, r"\{'type': 'function'.*\(dict\)"),
        (Kitchen(), r"\(Kitchen\)"),
        (Kitchen, r"\(type\)"),
    ],
    ids=stable_id,
)
def test_what_is_no_function_is_no_tool_and_the_error_says_what_to_pass(way, given, shown):
    with pytest.raises(InvalidTypeError, match=f"a tool is .*{shown}; pass a function made with def"):
        way(given)


@pytest.mark.parametrize("option", ["name", "description", "schema"])
def test_what_tool_is_told_has_the_right_type(option):
    with pytest.raises(InvalidTypeError, match=f"{option} is 5.*pass a "):
        tool(**{option: 5})(lambda: 1)


def no_schema(dish: Kitchen) -> str:
    return "soup"


def not_defined(dish: "Unknown") -> str:  # noqa: F821
    return "soup"


@pytest.mark.parametrize("func", [no_schema, not_defined, max], ids=["class", "name", "builtin"])
def test_a_signature_that_has_no_schema_is_refused_with_what_has_one(func):
    with pytest.raises(InvalidTypeError, match=f"signature of {func.__name__}.*annotate"):
        tool(func)


def test_a_decorated_function_and_a_method_are_tools():
    class Menu:
        def get(self, dish: str) -> str:
            return dish

    cached = functools.lru_cache(add.func)
    assert [item.name for item in as_tools([cached, Menu().get])] == ["add", "get"]


def test_events_are_collected_where_no_agent_runs():
    with collecting_events() as events:
        record_event("order", "soup")
        with collecting_events() as inner:
            record_event("order", "rice")
    assert ([event.text for event in events], [event.text for event in inner]) == (["soup"], ["rice"])
    with pytest.raises(InvalidInputError, match="within a tool"):
        record_event("order", "soup")


def test_what_is_no_tool_is_refused():
    with pytest.raises(InvalidTypeError, match="args"):
        tool(lambda *args: None)
    with pytest.raises(InvalidInputError, match="two tools are called add"):
        as_tools([add, tool(name="add")(lambda: 1)])


def test_one_function_or_many_become_tools():
    assert as_tools(None) == []
    assert as_tools(add) == as_tools([add]) == [add]
    (made,) = as_tools(lambda: 1)
    assert isinstance(made, FunctionTool)
