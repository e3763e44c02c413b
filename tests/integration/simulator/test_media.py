"""Images and PDFs: counted by the rules that the providers state, refused as they refuse them."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from wayline.simulator import BLOCK_TOKENS, PAGE_TOKENS, block_tokens
from wayline.testkit.media import pdf, png

from .sdks import anthropic, openai

JPEG = b"\xff\xd8\xff\xe0 and so on"


def encoded(content: bytes) -> str:
    return b64encode(content).decode()


def claude(kind: str, media_type: str, content: bytes | str) -> dict[str, Any]:
    data = content if isinstance(content, str) else encoded(content)
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


def url(media_type: str, content: bytes) -> str:
    return f"data:{media_type};base64,{encoded(content)}"


async def of_claude(providers: Any, *content: dict[str, Any], model: str = "claude-sonnet-5-5") -> int:
    """What Claude counts beside the question."""
    asked = [*content, {"type": "text", "text": "What is it?"}]
    answer = await providers.anthropic.messages.create(
        model=model, max_tokens=99, messages=[{"role": "user", "content": asked}]
    )
    return answer.usage.input_tokens - block_tokens("What is it?")


async def of_gpt(providers: Any, *content: dict[str, Any]) -> int:
    asked = [*content, {"type": "input_text", "text": "What is it?"}]
    answer = await providers.openai.responses.create(model="gpt-6-sol", input=[{"role": "user", "content": asked}])
    return answer.usage.input_tokens - block_tokens("What is it?")


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("claude-sonnet-5-5", (1_024, 1_024), 37 * 37),
        ("claude-sonnet-5-5", (1_920, 1_080), 69 * 39),
        ("claude-sonnet-5-5", (8_000, 1_500), 4_784),
        ("claude-haiku-4-5", (1_920, 1_080), 1_568),
    ],
)
async def test_an_image_is_squares_of_28_pixels_on_claude(providers, model, size, tokens):
    assert await of_claude(providers, claude("image", "image/png", png(*size)), model=model) == BLOCK_TOKENS + tokens


@pytest.mark.parametrize(
    ("detail", "size", "tokens"),
    [
        ("high", (1_024, 1_024), 1_229),
        ("high", (2_560, 1_440), 3_000),
        ("auto", (2_560, 1_440), 4_320),
    ],
)
async def test_an_image_is_squares_of_32_pixels_on_openai(providers, detail, size, tokens):
    image = {"type": "input_image", "image_url": url("image/png", png(*size)), "detail": detail}

    assert await of_gpt(providers, image) == BLOCK_TOKENS + tokens


async def test_a_pdf_counts_by_its_pages(providers):
    pages = pdf("One.", "Two.", "Three.")
    file = {"type": "input_file", "filename": "a.pdf", "file_data": url("application/pdf", pages)}

    expected = BLOCK_TOKENS + 3 * PAGE_TOKENS
    assert await of_claude(providers, claude("document", "application/pdf", pages)) == expected
    assert await of_gpt(providers, file) == expected


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (claude("image", "image/tiff", JPEG), "media_type: Input should be 'image/jpeg', 'image/png'"),
        (claude("image", "image/png", JPEG), "Image does not match the provided media type image/png"),
        (claude("image", "image/png", "***"), "Invalid base64"),
        (claude("image", "image/jpeg", JPEG + bytes(4_000_000)), "image exceeds 5 MB maximum"),
        (claude("image", "image/png", png(8_001, 1)), "max allowed size: 8000 pixels"),
        (claude("document", "text/html", b"<p>"), "Input should be 'application/pdf'"),
        (claude("document", "application/pdf", JPEG), "The PDF specified was not valid."),
        (claude("document", "application/pdf", pdf(*["x"] * 601)), "A maximum of 600 PDF pages"),
    ],
)
async def test_messages_refuses_what_is_no_image_or_pdf_that_it_takes(providers, block, message):
    with pytest.raises(anthropic.BadRequestError, match="messages.0.content.0") as refused:
        await of_claude(providers, block)

    assert message in str(refused.value)
    assert (providers.charge.outcome, providers.charge.usd) == ("refused", 0)


async def test_messages_takes_32_megabytes_at_once(providers):
    padded = pdf("One.") + bytes(8 * 1024 * 1024)

    with pytest.raises(anthropic.APIStatusError) as refused:
        await of_claude(providers, *[claude("document", "application/pdf", padded)] * 3)

    assert (refused.value.status_code, refused.value.type) == (413, "request_too_large")
    assert await of_claude(providers, *[claude("document", "application/pdf", padded)] * 2) > 0


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"type": "input_image", "image_url": url("image/tiff", JPEG)}, "unsupported image"),
        ({"type": "input_image", "image_url": url("image/png", JPEG)}, "unsupported image"),
        ({"type": "input_file", "filename": "a", "file_data": url("application/pdf", JPEG)}, "a named PDF"),
        ({"type": "input_file", "file_data": url("application/pdf", pdf("x"))}, "a named PDF"),
    ],
)
async def test_openai_refuses_what_is_no_image_or_pdf_that_it_takes(providers, part, message):
    with pytest.raises(openai.BadRequestError, match=message):
        await of_gpt(providers, part)
