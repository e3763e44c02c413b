"""JSON as models write it: whole, broken, unfinished."""

import re

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.llm.broken_json import repair
from wayline.testkit.walks import examples

numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_is_whole_is_not_touched(value):
    assert repair.repaired(orjson.dumps(value).decode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "{'name': 'Ada', 'age': 36}",
        '{name: "Ada", age: 36}',
        '{"name": "Ada", "age": 36,}',
        '{"name": "Ada" "age": 36}',
        '{"name": "Ada", /* or so */ "age": 36}',
        '{"name": "Ada", "age": 36',
        'Here it is:\n```json\n{"name": "Ada", "age": 36}\n```\nI hope it helps.',
        "{\u201cname\u201d: \u201cAda\u201d, \u201cage\u201d: 36}",
    ],
)
def test_what_is_broken_is_mended(text):
    assert repair.repaired(text) == {"name": "Ada", "age": 36}


@given(st.text(alphabet="{}[]\":,\\ \n'ab1-.eu/*`", max_size=60) | st.text(max_size=60))
@settings(max_examples=examples(400))
def test_any_text_is_mended_to_something_storable_or_refused(text):
    try:
        value = repair.repaired(text)
    except ValueError:
        return
    orjson.dumps(value)


@pytest.mark.parametrize(
    "text", ["no value here", "[" * 100_000, '{"a":' * 100_000, "{'a': " + "x" * repair.REPAIR_MAX_CHARS]
)
def test_the_hopeless_is_refused_at_once(text):
    with pytest.raises(ValueError):
        repair.repaired(text)


def test_a_lone_half_of_a_character_is_replaced():
    assert repair.repaired('{"b": "\\ud800"}') == {"b": "\ufffd"}


@pytest.mark.parametrize("number", ["1e999", "123456789012345678901234567890", "-Infinity", "NaN"])
def test_what_json_cannot_hold_is_refused(number):
    with pytest.raises(ValueError):
        repair.repaired(f'{{"a": {number},}}')


def test_stray_quotes_do_not_hold_everything_up():
    with pytest.raises(ValueError, match="too confused"):
        repair.repaired('["' + '"x" y ' * 5_000)


@given(values, st.data())
def test_an_unfinished_value_is_never_contradicted(value, data):
    text = orjson.dumps(value).decode()
    end = data.draw(st.integers(0, len(text)))
    known = repair.partial(text[:end])

    assert known is None or _begins(known, value)


@pytest.mark.parametrize("text", ["", " ", "12", "-", "tru", "fals", "nul"])
def test_of_a_bare_value_nothing_is_certain_until_it_ends(text):
    assert repair.partial(text) is None


@pytest.mark.parametrize("text", ["x", "{x", "tru3"])
def test_what_is_not_the_beginning_of_json_is_refused(text):
    with pytest.raises(ValueError):
        repair.partial(text)


@given(st.dictionaries(texts, values, max_size=4))
def test_a_finished_object_is_known_whole(value):
    assert repair.partial(orjson.dumps(value).decode()) == value


def _begins(known, value) -> bool:
    if isinstance(known, dict):
        return isinstance(value, dict) and all(k in value and _begins(v, value[k]) for k, v in known.items())
    if isinstance(known, list):
        return isinstance(value, list) and len(known) <= len(value) and all(map(_begins, known, value))
    if isinstance(known, str):
        return isinstance(value, str) and value.startswith(known)
    return known == value


def test_objects_are_found_in_any_text():
    text = 'First {"a": 1}, then {not this} and {"b": {"c": 2}}.'

    assert list(repair.objects(text)) == [{"a": 1}, {"b": {"c": 2}}]


def test_the_search_for_objects_has_an_end():
    assert list(repair.objects("{" * 100_000)) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a" true, "b": 1}', {"a": True, "b": 1}),
        ('{"a"false}', {"a": False}),
        ('{"a" null}', {"a": None}),
        ('{"a" 5, "b" "x"}', {"a": 5, "b": "x"}),
        ('{"a": 240e+, "b": 1}', {"a": 240, "b": 1}),
        ('{"a": 12., "b": 1}', {"a": 12, "b": 1}),
        ('{"a": -3e}', {"a": -3}),
        ('{"a": "hello, "b": 2}', {"a": "hello", "b": 2}),
        ('{"a": "hello}', {"a": "hello"}),
        ('{"a": "x", "b": "hello world}', {"a": "x", "b": "hello world"}),
    ],
)
def test_missing_colons_half_numbers_and_open_strings_are_mended(text, value):
    assert repair.repaired(text) == value


@pytest.mark.parametrize("text", ['{"a" true-ish}', '{"a": tru, e}', '{"amount": 1 2 3 x4}', '{"a": t"rue"x}'])
def test_a_guess_never_holds_a_part_of_a_token(text):
    try:
        value = repair.repaired(text)
    except ValueError:
        return
    tokens = set(re.findall(r"[\w-]+", text))
    for leaf in [*value, *value.values()]:
        assert set(re.findall(r"[\w-]+", str(leaf))) <= tokens, value


def test_a_guess_makes_the_bare_text_once(monkeypatch: pytest.MonkeyPatch):
    text = f'{{"b": "{"b " * 2_000}", "a": [' + ", ".join(f'"it\\\'s {n}"' for n in range(100)) + "]} and so on"
    read: list[int] = []
    bare = repair._bare
    monkeypatch.setattr(repair, "_bare", lambda part: read.append(len(part)) or bare(part))

    assert repair.repaired(text)["a"][99] == "it's 99"
    assert len(text) <= sum(read) < 2 * len(text)
