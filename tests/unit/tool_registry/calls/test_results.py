"""What a tool tool_result, as the caller gets it."""

from __future__ import annotations

from base64 import b64encode, encodebytes
from collections.abc import Callable
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

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


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    "written",
    [
        lambda content: f"data:image/png;base64,{b64encode(content).decode()}",
        lambda content: encodebytes(content).decode(),
    ],
    ids=["as an address", "in lines"],
)
def test_an_image_in_any_base64_is_an_image(written: Callable[[bytes], str], large: bool):
    content = png(64, 48).ljust(3 * IMAGE_MAX_BYTES if large else 100, b"\0")
    image = ImageContent(type="image", data=written(content), mime_type="image/png")

    received = reply(CallToolResult(content=[image]))

    assert received.content.startswith("[image image/png, 64x48")
    assert [image.content_base64 for image in received.images] == ([] if large else [b64encode(content).decode()])


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

    assert received.content == "a\ufffdb"
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


def test_a_read_above_the_limit_fails_and_says_so():
    received = reply_of(result("x" * 1_001, meta={COST: "1"}), effect=Effect.READ, trusted=True, max_bytes=1_000)

    assert received.error is not None
    assert (received.error.code, received.cost_usd) == ("tool_failed", Decimal(1))
    assert received.error.message == "the tool's answer of 1001 bytes is above the limit of 1000; ask it for less"


@pytest.mark.parametrize("effect", [Effect.ONCE, Effect.RECONCILE, Effect.IDEMPOTENT])
def test_an_effect_whose_answer_is_above_the_limit_has_succeeded(effect):
    received = reply_of(result("paid " + "x" * 1_001, meta={COST: "1"}), effect=effect, trusted=True, max_bytes=1_000)

    assert (received.status, received.cost_usd) == ("success", Decimal(1))
    assert "The tool has run" in received.content
    assert "paid x" in received.content
    assert len(received.content.encode()) <= 1_000


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


@pytest.mark.parametrize("text", ["", "Found 2 orders."])
def test_structured_content_beside_a_short_text_is_shown(text):
    orders = {"orders": [{"id": "A-17"}, {"id": "B-42"}]}

    content = reply(result(text, structured_content=orders)).content

    assert content.startswith(text)
    assert content.endswith('{"orders": [{"id": "A-17"}, {"id": "B-42"}]}')


@pytest.mark.parametrize(
    "text",
    ['{"n": 1, "unit": "EUR"}', '{\n  "unit": "EUR",\n  "n": 1\n}', "It costs 1 EUR."],
    ids=["json", "pretty", "words"],
)
def test_what_the_text_says_already_is_not_shown_twice(text):
    assert reply(result(text, structured_content={"n": 1, "unit": "EUR"})).content == text


@pytest.mark.parametrize(
    ("texts", "value", "content"),
    [
        (["a", "b"], ["a", "b"], '["a", "b"]'),
        (['{\n  "n": 1\n}', '{\n  "n": 2\n}'], [{"n": 1}, {"n": 2}], '[{"n": 1}, {"n": 2}]'),
        ([], [], "[]"),
        (["plain"], "plain", "plain"),
        (["5"], 5, "5"),
    ],
)
def test_a_list_that_comes_item_by_item_is_one_list(texts, value, content):
    assert reply(result(*texts, structured_content={"result": value})).content == content


@pytest.mark.parametrize("mime_type", ["text/csv", "application/json; charset=utf-8", "image/svg+xml"])
def test_a_resource_of_text_bytes_is_shown(mime_type):
    blob = b64encode("{é}".encode()).decode()
    resource = EmbeddedResource(
        type="resource", resource=BlobResourceContents(uri="file:///a", mime_type=mime_type, blob=blob)
    )

    assert reply(CallToolResult(content=[resource])).content == f"[{mime_type} resource file:///a]\n{{é}}"


def test_a_link_to_a_resource_says_what_it_is():
    link = ResourceLink(
        name="orders", title="All orders", uri="db://orders", description="As\n CSV", mime_type="text/csv"
    )

    assert reply(CallToolResult(content=[link])).content == "[resource db://orders: All orders; As CSV; text/csv]"


def test_entities_are_read_from_a_text_that_is_a_json_object():
    text = '{"status": "late", "entities": [{"type": "order", "id": "A-17"}]}'

    assert reply(result(text)).entities == (Entity(type="order", id="A-17", name=""),)
