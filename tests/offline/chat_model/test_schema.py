"""JSON values that conform to a schema."""

import pytest

from memlab.offline.chat_model import fill_schema

REQUEST = {
    "messages": [
        {"role": "user", "content": "I'm Anna, I'm 30, I live in Rome and I like tea. My favourite colour is blue."}
    ]
}


def fill(schema, text="some text"):
    return fill_schema(schema, REQUEST, text)


def test_facts_by_property_name():
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"},
            "likes": {"type": "array", "items": {"type": "string"}}, "favoriteColor": {"type": "string"}, "answer": {"type": "string"},  # noqa: E501
        },
        "required": ["name"],
    }  # fmt: skip
    assert fill(schema) == {
        "name": "Anna",
        "age": 30,
        "city": "Rome",
        "likes": ["tea"],
        "favoriteColor": "blue",
        "answer": "some text",
    }


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": 5}, 5), ({"enum": ["a", "b"]}, "a"), ({"type": "boolean"}, False), ({"type": "null"}, None), ({"type": ["null", "integer"]}, 0),  # noqa: E501
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "some text"), ({"type": "integer", "minimum": 3}, 3), ({"type": "number", "maximum": -1}, -1),  # noqa: E501
        ({"type": "string", "maxLength": 4}, "some"), ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [0, 0]),  # noqa: E501
        ({"allOf": [{"type": "object", "properties": {"a": {"const": 1}}}]}, {"a": 1}), ({"type": "object", "required": ["x"]}, {"x": "some text"}),  # noqa: E501
    ],
)  # fmt: skip
def test_kinds(schema, value):
    assert fill(schema) == value


def test_the_text_chooses_an_enum():
    assert fill({"enum": ["red", "blue"]}, "I would say Blue") == "blue"


def test_references_and_recursion_end():
    schema = {
        "$defs": {"p": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
        "type": "object",
        "properties": {"person": {"$ref": "#/$defs/p"}},
        "required": ["person"],
    }
    assert fill(schema) == {"person": {"name": "Anna"}}
    node = {"$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"}
    assert isinstance(fill(node), dict)
    assert fill({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}) is not NotImplemented
