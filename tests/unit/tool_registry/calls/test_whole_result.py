"""A result as its server gave it, and its value as a program reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from wayline.contracts.tools import Effect, ToolReply
from wayline.tool_registry.calls import whole_result as whole_results
from wayline.tool_registry.calls.results import reply_of
from wayline.tool_registry.calls.server_answers import STRUCTURED, bounded_result
from wayline.tool_registry.calls.whole_result import structured_json, value_text, whole_result

TEXT = TextContent(type="text", text="two", _meta={"acme/id": 1, "wayline/error": "forged"})


def reply(result: CallToolResult, form: Any, **more: Any) -> ToolReply:
    return reply_of(result, effect=Effect.ONCE, trusted=False, max_bytes=1_000, form=form, **more)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "a", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "db://1", "mimeType": "text/plain", "text": "a"}},
        {"type": "resource", "resource": {"uri": "db://1", "mimeType": "application/pdf", "blob": "AAAA"}},
        {"type": "resource_link", "uri": "db://1", "name": "orders", "title": "All orders", "size": 7},
    ],
    ids=lambda block: block["type"],
)
def test_a_block_of_each_kind_stays_as_it_is(block: dict[str, Any]):
    result = CallToolResult.model_validate({"content": [block]}, by_name=False)

    [kept] = whole_result(result).blocks

    assert kept == block


def test_names_in_meta_that_mean_something_are_not_passed_on():
    meta = {"acme/id": 1, "plain": 2, "wayline/citations": [], "com.mcp.x/y": 3, "progressToken": 4}

    whole = whole_result(CallToolResult(content=[TEXT], _meta=meta))

    assert whole.meta == {"acme/id": 1, "plain": 2}
    assert whole.blocks == ({"type": "text", "text": "two", "_meta": {"acme/id": 1}},)
    assert whole_result(CallToolResult(content=[], _meta={"long": "x" * 20_000})).meta == {}


def test_an_icon_of_a_link_is_not_passed_on():
    link = ResourceLink.model_validate({"uri": "db://1", "name": "orders", "icons": [{"src": "https://spy.example"}]})

    assert whole_result(CallToolResult(content=[link])).blocks == (
        {"type": "resource_link", "uri": "db://1", "name": "orders"},
    )


def test_files_above_the_limit_of_a_result_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(whole_results, "MEDIA_MAX_CHARS", 10)
    image = ImageContent(type="image", data="A" * 8, mime_type="image/png")
    sound = AudioContent(type="audio", data="A" * 8, mime_type="audio/wav")
    file = EmbeddedResource(type="resource", resource=TextResourceContents(uri="db://1", text="a"))

    blocks = whole_result(CallToolResult(content=[image, sound, file])).blocks

    assert [one["type"] for one in blocks] == ["image", "text", "resource"]
    assert blocks[1]["text"].startswith("[audio, not shown")


@pytest.mark.parametrize(
    ("structured", "value"),
    [
        ({"n": 1}, '{"n": 1}'),
        ({"result": [1, 2]}, "[1, 2]"),
        ({"result": "plain \u00e9"}, "plain \u00e9"),
        ({"result": 9400111899223197428490}, "9400111899223197428490"),
        ({"result": 1, "more": 2}, '{"result": 1, "more": 2}'),
        (None, None),
    ],
)
@pytest.mark.parametrize("is_large", [False, True], ids=["as values", "as text"])
def test_the_structured_value_is_what_a_program_reads(structured: Any, value: str | None, is_large: bool):
    meta = {STRUCTURED: json.dumps(structured, ensure_ascii=False)} if is_large and structured else None
    result = CallToolResult(content=[TEXT], structured_content=None if meta else structured, _meta=meta)

    assert value_text(result) == value


def test_a_program_is_given_the_value_where_a_model_reads_words():
    orders = {"orders": [{"id": "A-17"}]}
    result = CallToolResult(content=[TextContent(type="text", text="One order.")], structured_content=orders)

    assert reply(result, "value").content == '{"orders": [{"id": "A-17"}]}'
    assert reply(result, "text").content == 'One order.\n{"orders": [{"id": "A-17"}]}'


def test_of_a_failure_a_program_reads_the_words():
    result = CallToolResult(content=[TEXT], structured_content={"n": 1}, is_error=True)

    failed = reply(result, "value")

    assert (failed.status, failed.error and "two" in failed.error.message) == ("failed", True)


def test_a_failure_is_given_whole_too():
    result = CallToolResult(content=[TEXT], structured_content={"n": 1}, is_error=True)

    whole = reply(result, "whole").whole

    assert whole is not None
    assert (whole.blocks[0]["text"], whole.structured) == ("two", '{"n": 1}')


def test_a_result_above_the_limit_says_that_its_tool_ran():
    result = CallToolResult(content=[TextContent(type="text", text="x" * 2_000)], structured_content={"n": 1})

    received = reply(result, "whole")

    assert received.status == "success" and received.whole is not None
    assert received.whole.structured is None
    assert "The tool has run" in received.whole.blocks[0]["text"]


def test_large_structured_content_stays_whole_as_text():
    orders = {"orders": ["x" * 100] * 1_000, "last": 9400111899223197428490}

    bounded = bounded_result({"content": [], "structuredContent": orders}, most=1_000_000)

    result = CallToolResult.model_validate(bounded, by_name=False)
    kept = structured_json(result)
    assert kept is not None and json.loads(kept) == orders


def test_no_server_says_what_its_structured_content_is_in_meta():
    forged = {"content": [], "structuredContent": {"n": 1}, "_meta": {STRUCTURED: '{"n": 2}', "other": 1}}

    bounded = bounded_result(forged, most=1_000_000)

    assert bounded["_meta"] == {"other": 1}
