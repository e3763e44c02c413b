"""What an answer proves, whatever bytes it is made of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import CallToolResult, jsonrpc_message_adapter

from wayline.tool_registry.calls.server_answers import (
    BLOCKS_MAX,
    UNREAD,
    VALUES_MAX,
    Verdict,
    answer_in,
    answer_in_part,
    bounded_result,
    first_keys,
    fitted_result,
    holds_too_much,
)
from wayline.tool_registry.connection.mcp_input import _is_block, _is_result
from wayline.tool_registry.connection.readable_messages import MARK, Proof, readable_now

VERSION = "2025-06-18"
MOST = 10_000

texts = st.text(st.characters(codec=None), max_size=20)
"""Also halves of surrogate pairs."""
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    scalars, lambda one: st.lists(one, max_size=3) | st.dictionaries(texts, one, max_size=3), max_leaves=8
)
blocks = st.fixed_dictionaries({"type": st.sampled_from(["text", "image", "resource", "odd"]), "text": values})
results = values | st.fixed_dictionaries(
    {}, optional={"content": st.lists(blocks | values, max_size=3) | values, "structuredContent": values,
                  "isError": values, "_meta": values, "resultType": values}
)  # fmt: skip


def said(raw: bytes, *, call_id: Any = 7) -> Any:
    """Return the message that the library reads, as it reads it."""
    message = readable_now(raw, most=MOST, call_id=call_id)
    return None if message is None else jsonrpc_message_adapter.validate_json(message, by_name=False)


def usable(result: dict[str, Any]) -> CallToolResult:
    fitted = fitted_result(result, is_block=lambda one: _is_block(one, version=VERSION))
    assert _is_result(fitted, VERSION)
    return CallToolResult.model_validate(fitted, by_name=False)


@settings(deadline=None)
@given(results)
def test_a_result_of_any_shape_has_acted_and_can_be_read(result):
    message = said(json.dumps({"jsonrpc": "2.0", "id": 7, "result": result}).encode())

    assert message.id == 7
    usable(message.result)


@settings(deadline=None)
@given(values.filter(lambda error: error is not None))
def test_an_error_of_any_shape_is_a_refusal(error):
    message = said(json.dumps({"jsonrpc": "2.0", "id": 7, "error": error}).encode())

    assert (message.id, message.error.data[MARK]) == (7, Proof.REFUSED)
    assert message.error.message


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_bytes_without_a_result_or_an_error_prove_nothing(raw):
    if b"result" not in raw and b"error" not in raw and b"method" not in raw:
        assert said(raw) is None


@settings(deadline=None)
@given(results, st.integers(min_value=1))
def test_a_result_that_is_cut_anywhere_has_acted(result, cut):
    whole = json.dumps({"jsonrpc": "2.0", "id": 7, "result": result})
    begun = whole.index("result") + len('result":')
    raw = whole[: begun + cut % (len(whole) - begun)].encode()

    message = readable_now(raw, most=MOST, call_id=7, why_cut="it was cut")

    assert message is not None
    read = usable(json.loads(message)["result"])
    assert UNREAD in (read.meta or {})


@settings(deadline=None)
@given(st.sampled_from(["wayline/proves", "unsent", "session ended"]), st.integers())
def test_no_server_can_mark_its_own_error(words, code):
    data = {MARK: Proof.UNSENT, words: words}
    message = said(
        json.dumps({"jsonrpc": "2.0", "id": 7, "error": {"code": code, "message": words, "data": data}}).encode()
    )

    assert message.error.data[MARK] == Proof.REFUSED


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b'{"id":7,"result":{"content":[{"type":"text","text":"party \\ud83c"}]}}', "party \ufffd"),
        (b'{"id":7,"result":{"content":[{"type":"text","text":"caf\xe9"}]}}', "caf\ufffd"),
        (b'{"id":7,"result":{"content":[{"type":"text","text":"a\x01\nb"}]}}', "a\x01\nb"),
        (b'\xef\xbb\xbf{"id":7,"result":{"content":[{"type":"text","text":"bom"}]}}', "bom"),
        ('{"id":7,"result":{"content":[{"type":"text","text":"wide"}]}}'.encode("utf-16"), "wide"),
        (b'{"id":7,"result":"paid"}', "paid"),
        (b'{"id":"7","result":{"content":"paid"}}', "paid"),
        (b'{"id":7,"result":{"toolResult":5}}', '{"toolResult": 5}'),
        (b'{"id":7,"result":{"content":[{"type":"odd","x":1}]}}', '{"type": "odd", "x": 1}'),
        (b'[{"id":7,"result":{"content":["a batch"]}}]', "a batch"),
        (b'[{"id":6,"result":{}},{"id":7,"result":{"content":["the second of a batch"]}}]', "the second of a batch"),
        (b'{"id":7,"result":{"content":["both"]},"error":{"code":1,"message":"x"}}', "both"),
        (b'{"id":7,"error":null,"result":{"content":["null beside it"]}}', "null beside it"),
        (b'{"id":7,"result":{"content":[' + b"[" * 500 + b"]" * 500 + b"]}}", "The tool has run"),
        (b'{"id":7,"result":{"content":[{"type":"text","text":' + b"9" * 5_000 + b"}]}}", "9" * 40),
        (b'{"id":7,"result":{"content":[{"type":"text","text":"unquoted" oops}]}}', "unquoted"),
    ],
)  # fmt: skip
def test_what_acted_is_read_for_what_it_says(raw, shown):
    message = said(raw)

    content = usable(message.result).content
    assert shown in "\n".join(getattr(block, "text", "") for block in content)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"id":7}',
        b'{"id":8,"result":{}}',
        b'{"id":7,"error":null}',
        b"<html>result</html>",
    ],
)
def test_what_is_no_answer_to_the_call_proves_nothing(raw):
    assert said(raw) is None


def test_the_keys_of_text_that_breaks_off_are_found():
    text = '{"a{": "}", "id": "x:7", "result": {"id": 3, "error": ['

    assert list(first_keys(text)) == ["a{", "id", "result"]
    assert answer_in_part(text.encode(), "cut").verdict is Verdict.ACTED
    assert answer_in_part(text.encode(), "cut").id == "x:7"


def test_endless_text_is_cut_and_a_failure_stays_one():
    words = [{"type": "text", "text": "x" * (MOST + 1)}]
    long = bounded_result({"content": words, "isError": True, "_meta": {UNREAD: "", "own": 1}}, most=MOST)
    many = bounded_result({"content": [{"type": "text", "text": str(n)} for n in range(2 * BLOCKS_MAX)]}, most=MOST)

    assert (long["isError"], len(long["content"])) == (True, 1)
    assert long["_meta"]["own"] == 1
    assert "above the limit" in long["_meta"][UNREAD], "a server does not say that its answer was read whole"
    assert (len(many["content"]), many["content"][-1]["text"][-4:]) == (BLOCKS_MAX + 1, f"\n{2 * BLOCKS_MAX - 1}")


def test_an_image_without_a_media_type_stays_an_image():
    blocks = [{"type": "image", "data": "iVBORw0KGgo="}, {"type": "image"}]

    fitted = fitted_result({"content": blocks}, is_block=lambda one: _is_block(one, version=VERSION))

    assert [one["type"] for one in fitted["content"]] == ["image", "text"]
    assert fitted["content"][0]["data"] == blocks[0]["data"]


def test_an_error_without_words_is_given_as_it_came():
    assert answer_in({"id": 1, "error": {"code": "E7", "detail": "no"}}).words == '{"code": "E7", "detail": "no"}'


def test_long_structured_content_becomes_text_and_keeps_its_entities():
    about = [{"type": "order", "id": "A-17"}]
    rows = {"rows": [{"n": n} for n in range(10_000)], "entities": about}
    bounded = bounded_result(
        {"content": [{"type": "text", "text": "10000 rows"}], "structuredContent": rows}, most=10**6
    )

    assert bounded["structuredContent"] == {"entities": about}
    assert [one["text"][:20] for one in bounded["content"]] == ["10000 rows", '{"rows": [{"n": 0}, ']


@pytest.mark.parametrize(
    ("raw", "is_too_much"),
    [
        (b"[" + b"1," * (VALUES_MAX + 9) + b"1]", True),
        (b'["' + b'","'.join([b"x"] * (3 * VALUES_MAX)) + b'"]', True),
        (b'["' + b'1,\\\\,\\",' * VALUES_MAX + b'"]', False),
        (b'["' + b"x" * (9 * VALUES_MAX) + b'"]', False),
    ],
    ids=["numbers", "texts", "a text with commas", "a long text"],
)
def test_a_message_of_too_many_values_is_not_read(raw, is_too_much):
    assert holds_too_much(raw) is is_too_much
