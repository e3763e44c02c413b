"""An index is made once, and again when a tenant's tools have changed."""

import asyncio
import threading

from wayline.contracts.tools import ToolDefinition
from wayline.tool_registry.tool_search import Entry, ToolIndexes
from wayline.tool_registry.tool_search.index import ToolIndex


def entries(*names: str) -> list[Entry]:
    return [Entry(ToolDefinition(name=name)) for name in names]


async def test_the_same_tools_share_an_index_until_one_changes():
    indexes = ToolIndexes()

    first = await indexes.of("t", entries("a", "b"))
    again = await indexes.of("t", entries("a", "b"))
    other = await indexes.of("t", entries("a", "c"))

    assert first is again
    assert first is not other
    assert [match.tool.name for match in other.search("c")] == ["c"]


async def test_tenants_do_not_find_each_others_tools():
    indexes = ToolIndexes()
    await indexes.of("t1", entries("secret"))

    theirs = await indexes.of("t2", entries("public"))

    assert theirs.search("secret") == []


async def test_searches_at_once_make_one_index():
    indexes = ToolIndexes()

    found = await asyncio.gather(*(indexes.of("t", entries("a", "b")) for _ in range(20)))

    assert len({id(one) for one in found}) == 1


async def test_a_search_uses_the_index_of_before_while_another_is_made(monkeypatch):
    indexes, go_on = ToolIndexes(), threading.Event()
    first = await indexes.of("t", entries("a"))
    monkeypatch.setattr("wayline.tool_registry.tool_search.indexes.FRESH_WITHIN_S", 0)
    monkeypatch.setattr(
        "wayline.tool_registry.tool_search.indexes.ToolIndex",
        lambda *of, **more: go_on.wait(20) and ToolIndex(*of, **more),
    )

    meanwhile = await indexes.of("t", entries("a", "b"))
    making = indexes.prepare("t", entries("a", "b"))
    go_on.set()

    assert meanwhile is first
    assert making is not None
    assert len(await making) == 2
    assert await indexes.of("t", entries("a", "b")) is await making


def test_an_index_made_of_the_one_before_finds_the_same():
    kept = entries("send_mail", "find_invoice")
    before = ToolIndex(kept)
    now = [kept[1], *entries("pay_invoice")]

    made = ToolIndex(now, before=before)

    assert made.search("pay an invoice") == ToolIndex(now).search("pay an invoice")
    assert made._terms_by_tool[id(kept[1].tool)][1] is before._terms_by_tool[id(kept[1].tool)][1]


async def test_a_search_keeps_the_index_that_another_tenant_displaces(monkeypatch):
    indexes, go_on = ToolIndexes(), threading.Event()
    first = await indexes.of("t", entries("a"))
    monkeypatch.setattr("wayline.tool_registry.tool_search.indexes.INDEXES_MAX", 1)
    monkeypatch.setattr("wayline.tool_registry.tool_search.indexes.FRESH_WITHIN_S", 0.2)
    making = indexes._make

    async def make(tenant: str, now: tuple[Entry, ...]) -> ToolIndex:
        if tenant == "t":
            await asyncio.to_thread(go_on.wait, 20)
        return await making(tenant, now)

    monkeypatch.setattr(indexes, "_make", make)
    searching = asyncio.create_task(indexes.of("t", entries("a", "b")))
    await asyncio.sleep(0)
    await indexes.of("other", entries("c"))

    assert await searching is first
    go_on.set()
    await asyncio.gather(*indexes._making.values())
