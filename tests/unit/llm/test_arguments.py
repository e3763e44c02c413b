"""Tool arguments as models write them, and tool names as they misremember them."""

import contextlib
import json
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.llm.broken_json.tool_arguments import UNREADABLE, fit, likely_tool, read
from wayline.llm.characters import joined
from wayline.testkit.walks import examples


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
        ({"at": 1}, {"at": 1}),
        ({"at": 10**30}, {"_unreadable": '{"at": 1000000000000000000000000000000}'}),
        ("hello", {"_unreadable": "hello"}),
        ("5", {"_unreadable": "5"}),
        ("[1, 2]", {"_unreadable": "[1, 2]"}),
        ('"hello"', {"_unreadable": '"hello"'}),
    ],
)
def test_arguments_are_read_or_handed_on_as_they_came(text, arguments):
    assert read(text) == arguments


@pytest.mark.parametrize(
    "text",
    [
        '{"at": "here',
        '{"at": "here"',
        '"{\\"at\\": 1',
        "{'at': 'here', 'on': [1, 2",
        '{"at": {"x": 1}',
        '{"at": 1, "on": tru',
        '```json\n{"at": 1,\n',
        '{"path": "a.md", "content": "# Title\\n\\n1. first',
    ],
)
def test_arguments_that_do_not_close_are_not_completed_by_guessing(text):
    assert read(text) == {"_unreadable": text}


@pytest.mark.parametrize(
    "number",
    [
        "123456789012345678901234",
        "-9223372036854775809",
        "18446744073709551616",
        "1e999",
        "-Infinity",
        "NaN",
        "0.12345678901234567890123",
        "12345678901234567890.5",
        "05",
        "5%",
    ],
)
@pytest.mark.parametrize("written", ['{{"id": {}}}', "{{'id': {},}}", '{{"ids": [1, {}]}}'])
def test_a_number_that_would_become_another_is_refused(number, written):
    text = written.format(number)

    assert read(text) == {"_unreadable": text}


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 2**53 + 1, 0.1, 1.5e300, 9007199254740993])
def test_a_number_that_can_be_kept_passes_digit_for_digit(number):
    assert read(f'{{"id": {number!r}}}') == read(f"{{'id': {number!r},}}") == {"id": number}


def test_a_lone_half_of_a_character_in_arguments_is_replaced():
    assert read('{"a": "party \\ud83c", "b": "\\ud83c\\udf89"}') == {"a": "party \ufffd", "b": "\U0001f389"}


@pytest.mark.parametrize(
    "text",
    [
        '{"a":,"b":2}',
        '{"a":"","b":}',
        '{"a":{"b":1,"c":},"d":2}',
        '{"a":"b,c,"d":"e"}',
        '{"a": "one"\n"two", "b": 1}',
        '{"a": "one"\n\n"two"}',
        '{"a": "v1", "v2", "k2": "v3"}',
        '{"a": "b", "c"}',
        '{"a": "b":"c"}',
        '{"a": "1" "2"}',
        '{"a" = 1 & "b" = 2}',
    ],
)
def test_what_would_lose_or_invent_a_string_is_refused(text):
    assert read(text) == {"_unreadable": text}


@given(st.text(max_size=200))
def test_any_text_is_an_object_of_some_kind(text):
    assert isinstance(read(text), dict)


leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet="ab1, .:\"'{}[]\n\\é\U0001f389", max_size=8)
)
objects = st.dictionaries(
    st.text(alphabet="abc", min_size=1, max_size=3),
    st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner)),
    min_size=1,
    max_size=4,
)


def each_leaf(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from each_leaf(item)
    elif isinstance(value, list):
        for item in value:
            yield from each_leaf(item)
    else:
        yield value


def written(text: str) -> str:
    """The text with its escapes resolved, so that a string can be found in it."""
    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", lambda found: unescaped(found[1]), text, flags=re.DOTALL)


def unescaped(escape: str) -> str:
    if escape[0] == "u" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(escape, escape)


def stands(leaf, text: str) -> bool:
    """Whether a leaf is a whole token of the text: not a part of one, not another number, not invented."""
    if isinstance(leaf, bool) or leaf is None:
        return re.search(rf"(?<!\w){json.dumps(leaf)}(?!\w)|\b{leaf}\b", text) is not None
    if isinstance(leaf, (int, float)):
        tokens = re.findall(r"(?<![\w.])[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])", text)
        return any(_same_number(token, leaf) for token in tokens)
    if not leaf:
        return '""' in text or "''" in text
    plain = re.sub(r"[\\\s]", "", joined(written(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")))
    return re.sub(r"[\\\s]", "", leaf) in plain


def _same_number(token: str, leaf: float) -> bool:
    with contextlib.suppress(ArithmeticError):
        return Decimal(token) == Decimal(repr(leaf))
    return False


def test_an_escape_that_lost_its_backslash_is_no_string():
    text = '"{"a": [{"0": null, "": "1,}\\n\'",}],}'

    assert "_unreadable" in read(text)


@given(objects, st.booleans(), st.data())
@settings(max_examples=examples(300), deadline=None)
def test_each_leaf_of_arguments_stands_whole_in_their_text(value, spelled_badly, data):
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    if spelled_badly:
        text = text.replace(": true", ": True").replace("}", ",}")
    end = data.draw(st.integers(0, len(text)))
    at = data.draw(st.integers(0, len(text)))
    for changed in (
        text,
        text[:end],
        text[:at] + text[at + 1 :],
        text[:at] + data.draw(st.sampled_from('",:}]0')) + text[at:],
    ):
        found = read(changed)
        if changed.strip() and "_unreadable" not in found:
            assert all(stands(leaf, changed) for leaf in each_leaf(found)), (changed, found)


@given(objects, st.data())
@settings(deadline=None)
def test_no_beginning_of_arguments_is_taken_for_whole(value, data):
    text = json.dumps(value)
    end = data.draw(st.integers(1, len(text) - 1))

    assert read(text[:end]) == {"_unreadable": text[:end]}


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
        ("name", 1.1),
        ("count", 1e22),
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
    assert likely_tool(name, ["get_weather", "get_time", "kb__search_docs"]) == meant


def test_without_tools_nothing_is_near():
    assert likely_tool("look", []) is None


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_types_are_found_where_each_alternative_refers_to_two(keyword: str):
    defs: dict[str, Any] = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    schema = {"$defs": {**defs, "d60": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/d0"}}}

    assert fit({"a": 1}, schema) == {"a": "1"}


def test_types_are_found_where_an_alternative_is_the_schema_itself():
    either = {"anyOf": [{"$ref": "#/$defs/either"}, {"type": "integer"}]}
    schema = {"$defs": {"either": either}, "properties": {"a": {"$ref": "#/$defs/either"}}}

    assert fit({"a": "1"}, schema) == {"a": 1}


def test_an_alternative_without_a_type_takes_everything():
    assert fit({"a": 1}, {"properties": {"a": {"anyOf": [{"type": "string"}, {}]}}}) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}{"a": 2}', {UNREADABLE: '{"a": 1}{"a": 2}'}),
        ('{}{"a": 1}', {"a": 1}),
        ('{"a": 1}\n{"a": 1}', {"a": 1}),
        ('{"a": "}{"}', {"a": "}{"}),
    ],
)
def test_different_objects_in_a_row_are_no_arguments(text: str, expected: dict[str, Any]):
    assert read(text) == expected
