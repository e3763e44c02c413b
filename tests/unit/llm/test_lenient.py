"""Spellings and slips that leave no doubt are read; where there is doubt, that is said."""

import contextlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.llm.broken_json.lenient import Unclear, read


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, $b_2: 'x'}", {"a": 1, "$b_2": "x"}),
        ("{`a`: \u201cb\u201d, \u2018c\u2019: 1}", {"a": "b", "c": 1}),
        ("[True, FALSE, None, null, undefined]", [True, False, None, None, None]),
        ("[.5, 1., +5, -2e3, 7]", [0.5, 1.0, 5, -2000.0, 7]),
        ("[1, 2,, 3,]", [1, 2, 3]),
        ("[,1]", [1]),
        ('{"a": 1,, "b": 2,}', {"a": 1, "b": 2}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('{"a": "x"\n"b": "y"}', {"a": "x", "b": "y"}),
        ('["x" "y"]', ["x", "y"]),
        ("[1 2]", [1, 2]),
        ("[{} {}]", [{}, {}]),
        ('{"a" 1, "b"= 2, "c" => 3}', {"a": 1, "b": 2, "c": 3}),
        ("/* c */ {'a': 1, // d\n 'b': 2 # e\n}", {"a": 1, "b": 2}),
        ("[1, 2, ...]", [1, 2]),
        ('{"a": 1, ...}', {"a": 1}),
        ('{"a": "foo" + "bar"}', {"a": "foobar"}),
        ('{"a": NumberLong("2"), "b": ISODate("2012-12-19T06:01:17Z")}', {"a": "2", "b": "2012-12-19T06:01:17Z"}),
        ('callback({"a": 1});', {"a": 1}),
        ('{"a": foo, "b": [bar]}', {"a": "foo", "b": ["bar"]}),
        ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}),
        ("{'a': 'it\\'s'}", {"a": "it's"}),
        ("{'a': 'it's'}", {"a": "it's"}),
        ('{"a": "a 24" screen"}', {"a": 'a 24" screen'}),
        ('{"a": "he said "hi" to me", "b": 1}', {"a": 'he said "hi" to me', "b": 1}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"a": 2]', {"a": 2}),
        ('{"a": 1}}]', {"a": 1}),
        ('{"a": {"b": [1, {"c": "d', {"a": {"b": [1, {"c": "d"}]}}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "x\\u26', {"a": "x"}),
        ('\ufeff{"a": "\\u2603"}', {"a": "\u2603"}),
    ],
)
def test_a_slip_is_forgiven(text, value):
    assert read(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "Here it is: {}",
        "{} {}",
        "1, 2",
        '{"a"}',
        '{"a":}',
        '{"a", "b"}',
        '{"a": 0123}',
        '{"a": two words}',
        '{"a": "\\q"}',
        '{"a": "first, b: "second"}',
        '["one" two", "three"]',
        '["a": 1]',
        '{"a": "12"" tall"}',
        '{"a": "b}',
        "[{]",
        '{"a": 1, "b',
        "f(1",
        "[" * 200,
        '{"a": "' + '" x ' * 100,
    ],
)
def test_what_could_mean_more_than_one_thing_is_unclear(text):
    with pytest.raises(Unclear):
        read(text)


numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(values, max_size=3) | st.dictionaries(texts, values, max_size=3))
def test_json_means_what_it_always_meant(value):
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()

    try:
        assert read(text) == value
    except Unclear:
        # A string that ends in a line break may have been meant otherwise; strict readers come first anyway.
        assert "\\n" in text or "\\" in text


@given(st.text(alphabet="{}[]\"':,= \\\n/*#+().ab1-`", max_size=80))
def test_any_text_has_a_value_or_is_unclear(text):
    with contextlib.suppress(Unclear):
        read(text)
