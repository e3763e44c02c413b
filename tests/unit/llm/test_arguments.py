"""Tool arguments as models write them, and tool names as they misremember them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.llm.broken_json.arguments import fit, nearest, read


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"at": 1}', {"at": 1}),
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ("{}", {}),
        ('"{\\"at\\": 1}"', {"at": 1}),
        ('[{"at": 1}]', {"at": 1}),
        ("{'at': True, // yes\n}", {"at": True}),
        ('```json\n{"at": 1}\n```', {"at": 1}),
        ('{"at": "here', {"at": "here"}),
        ("hello", {"_unreadable": "hello"}),
        ("5", {"_unreadable": "5"}),
        ("[1, 2]", {"_unreadable": "[1, 2]"}),
        ('"hello"', {"_unreadable": '"hello"'}),
    ],
)
def test_arguments_are_read_or_handed_on_as_they_came(text, arguments):
    assert read(text) == arguments


@pytest.mark.parametrize("text", ['{"at": "here', '"{\\"at\\": 1', "{'at': 1}"])
def test_cut_arguments_are_not_completed_by_guessing(text):
    assert read(text, cut=True) == {"_unreadable": text}


@given(st.text(max_size=200))
def test_any_text_is_an_object_of_some_kind(text):
    assert isinstance(read(text), dict)


SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "sure": {"type": "boolean"},
        "name": {"type": "string"},
        "either": {"type": ["string", "integer"]},
        "perhaps": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "place": {"$ref": "#/$defs/place"},
        "counts": {"type": "array", "items": {"type": "integer"}},
        "anything": {},
        "nowhere": {"$ref": "#/$defs/missing"},
        "elsewhere": {"$ref": "https://else.example/schema"},
    },
    "$defs": {"place": {"type": "object", "properties": {"x": {"type": "integer"}}}, "loop": {"$ref": "#/$defs/loop"}},
}


@pytest.mark.parametrize(
    ("field", "given", "meant"),
    [
        ("count", "3", 3),
        ("count", " -3 ", -3),
        ("count", "3.0", 3),
        ("count", 3.0, 3),
        ("ratio", "2.5", 2.5),
        ("ratio", "2e3", 2000.0),
        ("sure", "True", True),
        ("sure", "false", False),
        ("name", 5, "5"),
        ("perhaps", "7", 7),
        ("perhaps", "null", None),
        ("place", '{"x": "4"}', {"x": 4}),
        ("place", "{'x': 4}", {"x": 4}),
        ("counts", '["1", 2]', [1, 2]),
        ("counts", ["1", "x"], [1, "x"]),
    ],
)
def test_a_wrong_type_is_mended_where_nothing_is_lost(field, given, meant):
    fitted = fit({field: given}, SCHEMA)

    assert fitted == {field: meant}
    assert type(fitted[field]) is type(meant)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("count", "three"),
        ("count", "3.5"),
        ("count", 3.5),
        ("count", "1e30"),
        ("count", True),
        ("sure", "yes"),
        ("sure", 1),
        ("name", True),
        ("name", None),
        ("either", "3"),
        ("ratio", 2.0),
        ("place", "{x"),
        ("place", "[1]"),
        ("counts", "1"),
        ("counts", 1),
        ("anything", "3"),
        ("nowhere", "3"),
        ("elsewhere", "3"),
        ("unknown", "3"),
    ],
)
def test_what_would_be_a_guess_is_left_to_the_schema(field, given):
    fitted = fit({field: given}, SCHEMA)

    assert fitted == {field: given}
    assert type(fitted[field]) is type(given)


def test_a_schema_that_refers_to_itself_is_no_trap():
    assert fit({"a": "1"}, {"$ref": "#"}) == {"a": "1"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("get_weather", "get_weather"),
        ("getWeather", "get_weather"),
        ("Get-Weather", "get_weather"),
        ("functions.get_weather", "get_weather"),
        ("get_wether", "get_weather"),
        ("search_docs", "kb__search_docs"),
        ("fly_to_mars", None),
        ("", None),
    ],
)
def test_an_unknown_tool_has_a_neighbour_or_none(name, meant):
    assert nearest(name, ["get_weather", "get_time", "kb__search_docs"]) == meant


def test_without_tools_nothing_is_near():
    assert nearest("look", []) is None
