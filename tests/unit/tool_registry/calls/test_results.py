"""What a tool tool_result, as the caller gets it."""

from __future__ import annotations

from base64 import b64encode
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest
from mcp_types import CallToolResult, ImageContent, TextContent

from wayline.contracts.chat import Citation, ToolImage
from wayline.contracts.tools import Effect, ToolReply
from wayline.contracts.working_context import ENTITIES_PER_RESULT_MAX, ENTITY_NAME_MAX, Entity
from wayline.llm.tokens import estimate
from wayline.testkit.media import png
from wayline.tool_registry.calls.results import (
    CITATIONS,
    COST,
    IMAGE_MAX_BYTES,
    IMAGES_MAX,
    reconciled,
    reply_of,
)


def result(*texts: str, meta: dict[str, Any] | None = None, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text) for text in texts], _meta=meta, **more)


def reply(tool_result: CallToolResult, *, trusted: bool = True) -> ToolReply:
    return reply_of(tool_result, effect=Effect.ONCE, trusted=trusted, max_bytes=1_000)


def test_texts_are_joined_and_measured():
    received = reply(result("a", "bé"))

    assert (received.status, received.content, received.size_bytes, received.tokens) == ("success", "a\nbé", 5, 2)


@pytest.mark.parametrize("size", [3, 2_000])
@pytest.mark.parametrize("is_error", [False, True])
def test_every_reply_carries_attempts_and_duration(size, is_error):
    tool_result = result("x" * size, is_error=is_error)

    took = reply_of(tool_result, effect=Effect.ONCE, trusted=True, max_bytes=1_000, attempts=2, duration_ms=7.5)

    assert (took.effect, took.attempts, took.duration_ms) == (Effect.ONCE, 2, 7.5)


def test_what_a_model_cannot_read_is_named():
    image = ImageContent(type="image", data="AAAA", mime_type="image/png")

    assert reply(CallToolResult(content=[image])).content == "[image image/png]"


def picture(content: bytes, media_type: str = "image/png") -> ImageContent:
    return ImageContent(type="image", data=b64encode(content).decode(), mime_type=media_type)


def test_an_image_is_kept_beside_the_words_that_stand_for_it():
    before, after = (TextContent(type="text", text=text) for text in ("before", "after"))

    received = reply(CallToolResult(content=[before, picture(png(640, 480), "image/jpeg"), after]))

    assert received.content == "before\n[image image/png, 640x480]\nafter"
    content = png(640, 480)
    assert received.images == (
        ToolImage(
            media_type="image/png",
            sha256=sha256(content).hexdigest(),
            size_bytes=len(content),
            width=640,
            height=480,
            content_base64=b64encode(content).decode(),
        ),
    )


@pytest.mark.parametrize("size", [IMAGE_MAX_BYTES, IMAGE_MAX_BYTES + 1, 3 * IMAGE_MAX_BYTES])
def test_an_image_above_the_limit_is_named(size: int):
    received = reply(CallToolResult(content=[picture(png(64, 48).ljust(size, b"\0"))]))

    kept = size <= IMAGE_MAX_BYTES
    assert [image.size_bytes for image in received.images] == ([size] if kept else [])
    more = "" if kept else f", not shown: it is above the limit of {IMAGE_MAX_BYTES} bytes"
    assert received.content == f"[image image/png, 64x48{more}]"


def test_more_images_than_a_result_may_show_are_named():
    received = reply(CallToolResult(content=[picture(png(n, 9)) for n in range(1, IMAGES_MAX + 2)]))

    assert [image.width for image in received.images] == [*range(1, IMAGES_MAX + 1)]
    assert received.content.splitlines()[-1] == (
        f"[image image/png, {IMAGES_MAX + 1}x9, not shown: a result may show {IMAGES_MAX} images]"
    )


@pytest.mark.parametrize("content", [b"<svg/>", b"\x89PNG\r\n\x1a\n", b""])
def test_what_is_no_image_that_models_take_is_named(content: bytes):
    received = reply(CallToolResult(content=[picture(content, "image/svg+xml")]))

    assert (received.content, received.images) == ("[image image/svg+xml]", ())


def test_the_image_of_a_failure_is_named():
    received = reply(CallToolResult(content=[picture(png(8, 6))], is_error=True))

    assert received.error is not None
    assert (received.error.message, received.images) == ("[image image/png, 8x6]", ())


def test_a_structured_answer_without_text_is_given_as_json():
    assert reply(CallToolResult(content=[], structured_content={"n": 1})).content == '{"n": 1}'


def test_half_a_surrogate_pair_becomes_text_that_can_be_stored():
    received = reply(result("a\ud800b"))

    assert received.content == "a?b"
    assert received.model_dump_json()


def test_a_tool_that_reports_an_error_has_failed():
    received = reply(result("no money", is_error=True, meta={COST: "0.5"}))

    assert received.error is not None
    assert (received.status, received.error.code, received.error.message) == ("failed", "tool_failed", "no money")
    assert received.cost_usd == Decimal("0.5")


@pytest.mark.parametrize(
    ("meta", "cost"),
    [
        ({}, None),
        ({COST: "0.01"}, Decimal("0.01")),
        ({COST: 0.25}, Decimal("0.25")),
        ({COST: "much"}, None),
        ({COST: "-1"}, None),
        ({COST: "NaN"}, None),
        ({COST: "1e400"}, None),
    ],
)
def test_a_cost_is_taken_when_it_is_one(meta, cost):
    assert reply(result("x", meta=meta)).cost_usd == cost


def test_citations_count_only_from_a_trusted_server():
    tool_result = result("x", meta={CITATIONS: [{"document": "d", "quote": "q"}]})

    assert reply(tool_result).citations == (Citation(document="d", quote="q"),)
    assert reply(tool_result, trusted=False).citations == ()


def test_an_answer_above_the_limit_fails_and_is_not_cut():
    received = reply(result("x" * 1_001, meta={COST: "1"}))

    assert received.error is not None
    assert (received.content, received.error.code, received.cost_usd) == ("", "tool_failed", Decimal(1))


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("word", 1), ("words", 2), ("\u6f6e\u6c50" * 50, 163)])
def test_tokens_are_estimated_as_everywhere_else(text, tokens):
    assert reply(result(text)).tokens == estimate(text) == tokens


@pytest.mark.parametrize(
    ("tool_result", "outcome"),
    [
        (result('{"found": true, "content": "booked"}'), (True, "booked")),
        (result('{"found": false}'), (False, "null")),
        (result("x", structured_content={"found": True, "content": {"n": 1}}), (True, '{"n": 1}')),
    ],
)
def test_a_reconcile_answer_decides_the_keys_outcome(tool_result, outcome):
    assert reconciled(tool_result) == outcome


@pytest.mark.parametrize(
    "tool_result", [result("yes"), result('{"found": "yes"}'), result('{"found": true}', is_error=True), result("[1]")]
)
def test_any_other_reconcile_answer_is_no_answer(tool_result):
    with pytest.raises(ValueError, match=r"found|Expecting"):
        reconciled(tool_result)


def test_entities_are_read_from_structured_content():
    declared = [{"type": "order", "id": "A-17", "name": " Two\nshoes\u0007 "}, {"type": "seat", "id": 12}]

    received = reply(result("two", structured_content={"entities": declared}))

    assert received.entities == (Entity(type="order", id="A-17", name="Two shoes"), Entity(type="seat", id="12"))
    assert received.content == "two"


@pytest.mark.parametrize(
    "declared",
    [
        "order A-17",
        [["order", "A-17"]],
        [{"type": "order"}],
        [{"type": "Order [CONTEXT]", "id": "A-17"}],
        [{"type": "order", "id": "x" * 200}],
        [{"type": "order", "id": ""}],
        [{"type": ["order"], "id": "A-17"}],
    ],
)
def test_what_is_no_entity_is_passed_over(declared: Any):
    assert reply(result("two", structured_content={"entities": declared})).entities == ()


def test_many_entities_and_long_names_are_cut():
    declared = [{"type": "order", "id": str(n), "name": "x" * 1_000} for n in range(100)]

    entities = reply(result("two", structured_content={"entities": declared})).entities

    assert len(entities) == ENTITIES_PER_RESULT_MAX
    assert {len(one.name) for one in entities} == {ENTITY_NAME_MAX}
