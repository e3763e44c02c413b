"""The door for JSON that others wrote."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.strict_json import DEPTH_MAX, INTEGER_MAX, INTEGER_MIN, NotStrictJson, read_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(INTEGER_MIN, INTEGER_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


def nested(depth: int) -> str:
    return '{"a":[' * (depth // 2) + "1" + "]}" * (depth // 2)


@given(VALUES)
def test_every_accepted_value_is_written_again_as_it_was(value: Any):
    read = read_json(json.dumps(value))

    assert orjson.loads(orjson.dumps(read)) == read == value


def test_a_value_at_the_bound_of_depth_is_read_and_written():
    assert orjson.dumps(read_json(nested(DEPTH_MAX)))


@pytest.mark.parametrize(
    "text",
    [
        nested(DEPTH_MAX + 2),
        nested(300),
        "[" * 100_000,
        "9400111899223197428490",
        '{"id":[-9223372036854775809]}',
        "1" * 5_000,
        "1e400",
        "NaN",
        "-Infinity",
        '"\\ud83d"',
        '"a\x00"',
        b'"\xff"',
        "[1] [2]",
        "01",
        "",
    ],
    ids=lambda text: repr(text[:24]),
)
def test_what_could_not_be_written_again_is_refused(text: str | bytes):
    with pytest.raises(NotStrictJson):
        read_json(text)


def test_brackets_in_texts_do_not_count_as_depth():
    assert read_json(json.dumps(["[" * 1_000])) == ["[" * 1_000]


def test_a_byte_order_mark_is_passed_over_and_utf_16_named():
    assert read_json(b'\xef\xbb\xbf{"a":1}') == read_json('\ufeff{"a":1}') == {"a": 1}
    with pytest.raises(NotStrictJson, match="UTF-16: send UTF-8"):
        read_json('{"a":1}'.encode("utf-16"))
