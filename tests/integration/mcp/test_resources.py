# pyright: reportAttributeAccessIssue=false
"""Resources over `/mcp`: documents, and what jobs did."""

from __future__ import annotations

import orjson
import pytest
import pytest_asyncio
from mcp import MCPError

from wayline.contracts.errors import Refused
from wayline.contracts.knowledge import DocumentText, ReadDocument
from wayline.contracts.memory import FactsSaved, SaveMemories, StoreInsights
from wayline.testkit import Platform, until

from ..jobs.conftest import index_document
from .conftest import Door, open_door

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

LINE = "High water follows the moon by fifty minutes a day, number {n}."
TEXT = "\n\n".join(LINE.format(n=n) for n in range(6_000))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_door(module_platform: Platform) -> Door:
    return await open_door(module_platform, "executor", "retrieval", "tracing")


async def test_a_documents_text_is_listed_and_read_whole(door: Door):
    await index_document(door.platform, "tides / 1", "tides.md", TEXT)

    async with door.client() as client:
        [listed] = (await client.list_resources()).resources
        [read] = (await client.read_resource(listed.uri)).contents

    assert (listed.uri, listed.name) == ("document://tides%20%2F%201", "tides.md")
    assert read.text == TEXT
    assert read.mime_type == "text/plain"


async def test_a_piece_of_text_fits_a_message_and_names_the_next(door: Door):
    platform = door.platform
    await index_document(platform, "tides", "tides.md", TEXT)

    first = await platform.bus.ask(ReadDocument(tenant=platform.tenant, document_id="tides"), DocumentText)
    with pytest.raises(Refused, match="document 'moon'"):
        await platform.bus.ask(ReadDocument(tenant=platform.tenant, document_id="moon"), DocumentText)
    with pytest.raises(Refused, match="document 'tides'"):
        await platform.bus.ask(ReadDocument(tenant="acme", document_id="tides"), DocumentText)
    past = ReadDocument(tenant=platform.tenant, document_id="tides", position=100_000)

    assert first.next_position is not None
    assert len(first.text.encode()) <= 180_000
    assert await platform.bus.ask(past, DocumentText) == DocumentText(text="")


async def test_documents_are_listed_page_by_page(door: Door, monkeypatch: pytest.MonkeyPatch):
    for name in ("a", "b", "c"):
        await index_document(door.platform, name, f"{name}.md", "text")

    async with door.client() as client:
        await client.list_resource_templates()
        monkeypatch.setattr("wayline.gateway.handlers.mcp.resources.PAGE", 2)
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)

    assert [one.name for one in first.resources + second.resources] == ["c.md", "b.md", "a.md"]
    assert second.next_cursor is None


async def test_a_jobs_trace_and_result_are_read_by_its_id(door: Door):
    async with door.client() as client:
        answered = await client.call_tool("run_agent", {"agent": "assistant", "input": "When is high water?"})
        job_id = answered.structured_content["job_id"]

        async def projected() -> bool:
            try:
                await client.read_resource(f"job://{job_id}/trace")
            except MCPError:
                return False
            return True

        await until(projected, why="tracing has read the job's log")
        [trace] = (await client.read_resource(f"job://{job_id}/trace")).contents
        [result] = (await client.read_resource(f"job://{job_id}/result")).contents

    assert orjson.loads(trace.text)["root"]["name"].startswith("invoke_agent")
    body = orjson.loads(result.text)
    assert (body["job_id"], body["status"]) == (job_id, "completed")
    assert body["answer"] == answered.structured_content["answer"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_is_not_there_is_an_error_of_the_protocol(door: Door, mode: str):
    async with door.client(mode=mode) as client:
        for uri in ("document://none", "job://none/trace", "job://none/result", "job://none", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="there is no resource") as caught:
                await client.read_resource(uri)
            assert (caught.value.code, caught.value.data) == (-32602, {"uri": uri})


async def test_what_is_remembered_is_read_by_the_keys_own_user(door: Door):
    platform = door.platform
    own = {"text": "Lives in Bonn.", "category": "profile"}
    for user_id in ("ann", "bob"):
        saved = {"tenant": platform.tenant, "key": user_id, "user_id": user_id, "facts": [own]}
        await platform.bus.ask(SaveMemories.model_validate(saved), FactsSaved)
    insight = {"text": "Client loves sea views.", "category": "preference"}
    stored = {"tenant": platform.tenant, "key": "i", "about": {"type": "client", "id": "acme"}, "facts": [insight]}
    outcome = (await platform.bus.ask(StoreInsights.model_validate(stored), FactsSaved)).outcomes[0]
    anns = await door.key("read", user_id="ann")

    async with door.client(anns) as client:
        templates = {one.uri_template for one in (await client.list_resource_templates()).resource_templates}
        read = [
            orjson.loads((await client.read_resource(uri)).contents[0].text)  # type: ignore[union-attr]
            for uri in ("memory://ann", "subject://client/acme", f"insight://{outcome.fact_id}")
        ]
        with pytest.raises(MCPError):
            await client.read_resource("memory://bob")
        with pytest.raises(MCPError):
            await client.read_resource("subject://client/nobody")

    assert {"subject://{type}/{id}", "insight://{fact_id}", "memory://{user_id}"} <= templates
    assert [one["user_id"] for one in read[0]["facts"]] == ["ann"]
    assert [one["text"] for one in read[1]["most_important"]] == [read[2]["text"]] == ["Client loves sea views."]
