"""A search of tools is by words and by meaning where retrieval has an embedder; its calls are paid for like any."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

from aiohttp import web

from wayline.contracts.searched_tools import FoundTools, SearchTools
from wayline.contracts.traces import CostTable, GetCosts
from wayline.retrieval.settings import Settings as RetrievalSettings
from wayline.simulator import Say, Simulator, turns
from wayline.testkit import Platform, until
from wayline.tool_registry.settings import Settings as RegistrySettings

from .conftest import until_listed

CONCEPTS = ({"time", "hour", "clock", "o'clock", "late"}, {"document", "documents", "knowledge", "passages"})
WAIT_S = 20.0

Answer = Callable[[list[str]], Awaitable[None]]


@asynccontextmanager
async def embedder(before: Answer) -> AsyncIterator[str]:
    """An embeddings endpoint that knows two concepts; `before` runs before it answers."""

    async def answer(request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        await before(texts)
        data = [{"index": at, "embedding": _vector(text)} for at, text in enumerate(texts)]
        return web.json_response({"data": data, "usage": {"prompt_tokens": 8 * len(texts)}})

    application = web.Application()
    application.router.add_post("/embeddings", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


def _vector(text: str) -> list[float]:
    words = set(text.lower().replace("_", " ").replace(".", " ").replace("?", " ").split())
    return [float(len(words & concept)) for concept in CONCEPTS] + [0.1]


async def started(platform: Platform, url: str, *, wait_s: float = WAIT_S) -> None:
    await platform.start(
        *("router", "retrieval", "tool_registry", "tracing"),
        retrieval=RetrievalSettings(embedding_model="concepts", embedding_base_url=url),
        tool_registry=RegistrySettings(search_embedding_wait_s=wait_s),
    )
    await until_listed(platform, "get_current_time")


async def search(platform: Platform, query: str) -> list[str]:
    found = await platform.bus.ask(SearchTools(tenant="default", query=query), FoundTools, timeout_s=WAIT_S * 2)
    return [one.tool.name for one in found.tools]


async def test_a_tool_is_found_that_shares_no_word_with_the_task(platform: Platform):
    asked: list[str] = []

    async def note(texts: list[str]) -> None:
        asked.extend(texts)

    async with embedder(note) as url:
        await started(platform, url)
        first = await search(platform, "is it late? which hour?")
        tools = len(asked) - 1
        again = await search(platform, "is it late? which hour?")

    assert first[0] == again[0] == "get_current_time"
    # Of tools each text is embedded once, however often is searched.
    assert tools > 1 and len(asked) == tools + 2


async def test_a_search_is_by_words_while_the_embedder_hangs(platform: Platform):
    goes_on = asyncio.Event()

    async def hang(_: list[str]) -> None:
        await goes_on.wait()

    async with embedder(hang) as url:
        await started(platform, url, wait_s=0.2)
        found = await search(platform, "what time is it?")
        goes_on.set()

    assert found[0] == "get_current_time"


async def test_what_a_search_embeds_is_in_the_ledger_as_billed(platform: Platform):
    async with Simulator(turns(Say(text="-"))) as simulator:
        where: dict[str, Any] = {"embedding_base_url": simulator.openai_url, "embedding_api_key": "simulated"}
        await platform.start(
            *("router", "retrieval", "tool_registry", "tracing"),
            retrieval=RetrievalSettings(embedding_model="text-embedding-3-small", **where),
            tool_registry=RegistrySettings(search_embedding_wait_s=WAIT_S),
        )
        await until_listed(platform, "get_current_time")
        await search(platform, "what time is it?")
        billed = simulator.bill.usd

        async def is_listed() -> bool:
            table = await platform.bus.ask(GetCosts(tenant="default"), CostTable)
            return table.total is not None and table.total.cost_usd == billed

        assert billed > Decimal(0)
        await until(is_listed, why="the ledger has what is billed")
