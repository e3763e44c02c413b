"""Documents that are made to hurt end in bounded time, ready or with a clear error, while another tenant searches."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from wayline.chassis import Service
from wayline.contracts.knowledge import Document
from wayline.testkit import until

Make = Callable[[float], dict[str, Any]]
WHOLE = pytest.mark.slow, pytest.mark.timeout(900)
"""Too long for every run: `make faults` runs them."""


def different_words(share: float) -> dict[str, Any]:
    return {"text": " ".join(f"w{n:07}" for n in range(int(2_000_000 * share)))}


def one_line(share: float) -> dict[str, Any]:
    return {"text": "x" * int(10_000_000 * share)}


def nul_bytes(share: float) -> dict[str, Any]:
    return {"text": "The\0 tortoise." + "\0" * int(1_000_000 * share), "metadata": {"a\0": "b\0"}}


def one_page(share: float) -> dict[str, Any]:
    from .conftest import make_pdf

    content = make_pdf("tortoise " * int(1_000_000 * share / 9))
    return {"content_base64": b64encode(content).decode(), "media_type": "application/pdf"}


def many_pages(share: float) -> dict[str, Any]:
    from .conftest import make_pdf

    content = make_pdf(*(f"The tortoise of page {n}." for n in range(int(5_000 * share))))
    return {"content_base64": b64encode(content).decode(), "media_type": "application/pdf"}


@pytest.mark.parametrize(
    ("make", "share"),
    [
        *((make, 0.01) for make in (different_words, one_line, nul_bytes, one_page, many_pages)),
        *(
            pytest.param(make, 1.0, marks=WHOLE)
            for make in (different_words, one_line, nul_bytes, one_page, many_pages)
        ),
    ],
)
async def test_a_bad_document_ends_while_others_search(service: Service, client: Any, make: Make, share: float):
    fields = await asyncio.to_thread(make, share)
    await client.ingest("theirs", "The hare.", tenant="globex")
    await client.send("bad", fields.pop("text", None), **fields)

    async def ended() -> Document | None:
        hits = (await client.search("hare", tenant="globex")).hits
        assert [hit.document_id for hit in hits] == ["theirs"]
        return await client.ended("bad")

    bad = await until(ended, within=800, why="it is ready or has failed")
    await client.ingest("next", "The hare of the same tenant.")

    assert bad is not None and (bad.status == "ready" or (bad.error and len(bad.error) > 40)), bad
    # At once, also while its words are being counted.
    assert (await client.search("hare")).hits[0].document_id == "next"
