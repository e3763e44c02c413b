"""Documents of strangers are read in processes that can be ended, those of one tenant one after the other."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from wayline.guarded_http import AddressPolicy, GuardedClient
from wayline.simulator.website import Page, Website
from wayline.tool_registry.web.fetching import CannotFetch
from wayline.tool_registry.web.pages.document_reader import DocumentReader, NotReadInTime
from wayline.tool_registry.web.pages.web_pages import WebPages

SLOW = b"<p>word</p>" * 2_000_000
"""Takes far longer than a test."""


@asynccontextmanager
async def busy(reader: DocumentReader, *tenants: str):
    """Let each tenant read a slow document meanwhile."""
    tasks = [asyncio.create_task(reader.read(tenant, SLOW, kind="html")) for tenant in tenants]
    # Each task begins: it takes a reader, or its place among those that wait.
    await asyncio.sleep(0)
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_tenants_slow_documents_leave_a_reader_to_others():
    reader = DocumentReader(readers_max=2)
    async with busy(reader, "a", "a", "a") as slow:
        read = await reader.read("b", b"<p>one</p>", kind="html")
        still_slow = [task for task in slow if not task.done()]
    await reader.close()

    assert (read.text, len(still_slow)) == ("one", 3)


async def test_waiting_for_a_reader_ends_at_the_deadline():
    reader = DocumentReader(readers_max=1)
    async with busy(reader, "a"):
        with pytest.raises(NotReadInTime, match="other documents were read first"):
            await reader.read("b", b"one", kind="text", deadline=asyncio.get_running_loop().time() + 0.05)
    read = await reader.read("b", b"one", kind="text")
    await reader.close()

    assert read.text == "one"


async def test_reading_ends_at_the_deadline_with_its_process():
    reader = DocumentReader()
    with pytest.raises(NotReadInTime, match="reading it took too long"):
        await reader.read("a", SLOW, kind="html", deadline=asyncio.get_running_loop().time() + 0.2)

    assert reader._processes._idle == []


async def test_waiting_for_a_reader_counts_within_a_pages_limit():
    async with Website({"/page": Page("one", media_type="text/plain")}) as site:
        reader = DocumentReader()
        client = GuardedClient(AddressPolicy.of([f"127.0.0.1:{site.port}"]))
        pages = WebPages(client, reader, timeout_s=2, robots=False)
        async with busy(reader, "a"):
            with pytest.raises(CannotFetch, match="other documents were read first") as refused:
                await pages.fetch("a", site.url("/page"))
        await reader.close()

    assert refused.value.code == "timeout"


async def test_no_control_character_of_a_document_is_returned():
    reader = DocumentReader()
    text = await reader.read("a", b"a\x00b \x1b[31mred\x1b[0m", kind="text")
    html = await reader.read("a", b"<title>T\x07</title><p>a\x08b</p>", kind="html")
    await reader.close()

    assert (text.text, html.title, html.text) == ("a b red", "T", "ab")
