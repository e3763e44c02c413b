"""Images that a provider made and charged for, in answers that are odd, damaged or dear."""

from __future__ import annotations

import json
from base64 import b64encode, encodebytes
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import pytest

from wayline.guarded_http import AddressPolicy, GuardedClient
from wayline.simulator.website import Page, Website
from wayline.testkit.media import png
from wayline.tool_registry.images.image_prices import known_prices
from wayline.tool_registry.images.images_api import ImageFailed, ImageRequest, ImagesApi

PNG = png(64, 64)
PLAIN = b64encode(PNG).decode()
BROKEN = encodebytes(PNG).decode()
IMAGE_USD = Decimal("0.034")
PROMPT_USD = Decimal(5) / 1_000_000
REQUEST = ImageRequest("cat", "square", "medium")
PRICES = known_prices("gpt-image-1.5")


@asynccontextmanager
async def api_that_answers(body: bytes | str, *, image_max_bytes: int = 1_000_000):
    async with Website({"/v1/images/generations": Page(body, media_type="application/json")}) as site:
        assert PRICES is not None
        client = GuardedClient(AddressPolicy.of([f"127.0.0.1:{site.port}"]))
        yield ImagesApi(
            client,
            base_url=site.url("/v1"),
            key="k",
            model="gpt-image-1.5",
            prices=PRICES,
            timeout_s=10,
            image_max_bytes=image_max_bytes,
        )
        await client.close()


def answer(tokens: Any = 2, **entry: Any) -> str:
    usage = {"input_tokens": 2, "input_tokens_details": {"text_tokens": tokens, "image_tokens": 0}}
    return json.dumps({"data": [entry], "usage": usage})


@pytest.mark.parametrize(
    "body",
    [
        answer(b64_json=BROKEN),
        answer(b64_json=BROKEN).replace("\\n", "\n"),
        answer(b64_json=f"data:image/png;base64,{PLAIN}"),
        answer(url=f"data:image/png;base64,{PLAIN}"),
    ],
    ids=["line breaks", "plain line breaks", "data URI", "data URI as the address"],
)
async def test_no_paid_image_is_lost_over_its_encoding(body: str):
    async with api_that_answers(body) as api:
        image = await api.make(REQUEST)

    assert (image.content, image.cost_usd) == (PNG, IMAGE_USD + 2 * PROMPT_USD)


async def test_an_image_of_the_size_limit_may_have_line_breaks():
    content = PNG + bytes(1_000_000 - len(PNG))
    encoded = encodebytes(content).decode().replace("\n", "\r\n")
    async with api_that_answers(answer(b64_json=encoded)) as api:
        image = await api.make(REQUEST)

    assert image.content == content


@pytest.mark.parametrize(
    ("tokens", "charged"), [(12, 12), (10**9, 4_000), (0, 0), (-1, 3), ("12", 3), (None, 3), (float("inf"), 3)]
)
async def test_counted_tokens_cost_no_more_than_was_held(tokens: Any, charged: int):
    async with api_that_answers(answer(tokens, b64_json=PLAIN)) as api:
        image = await api.make(REQUEST)

    assert PRICES is not None
    assert image.cost_usd == IMAGE_USD + charged * PROMPT_USD <= PRICES.charge.most({"quality": "medium"})


async def test_an_image_that_breaks_off_is_charged_and_refused():
    async with api_that_answers(answer(b64_json=b64encode(PNG[:30]).decode())) as api:
        with pytest.raises(ImageFailed, match="breaks off after 30 bytes") as failed:
            await api.make(REQUEST)

    assert failed.value.cost_usd == IMAGE_USD + 2 * PROMPT_USD


@pytest.mark.parametrize("body", ["[" * 100_000, "<html>", "[]", '{"data": []}', answer(b64_json="no base64!")])
async def test_what_is_no_image_has_an_unknown_cost(body: str):
    async with api_that_answers(body) as api:
        with pytest.raises(ImageFailed, match="what is no image") as failed:
            await api.make(REQUEST)

    assert failed.value.cost_usd is None


async def test_a_revised_prompt_has_no_control_characters():
    async with api_that_answers(answer(b64_json=PLAIN, revised_prompt="A\x1b[31m cat\ud800")) as api:
        image = await api.make(REQUEST)

    assert image.revised_prompt == "A cat"
