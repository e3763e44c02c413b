# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOptionalSubscript=false
"""Who may use `/mcp`, and what is refused before the protocol is spoken."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from mcp_types import Tool

from wayline.contracts.bus_tools import AnnounceTools, BusTool
from wayline.contracts.tools import Effect
from wayline.gateway.adapters import keys as remembered
from wayline.gateway.adapters.keys import revoke_key
from wayline.gateway.handlers.mcp.offers import Offers
from wayline.gateway.keys import Caller
from wayline.testkit import Platform
from wayline.testkit.walks import cases
from wayline.tool_registry.bus_tools import bus_service

from ..jobs.conftest import index_document
from .conftest import Door, open_door

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
LATEST = "2026-07-28"
ABOUT = {
    "io.modelcontextprotocol/protocolVersion": LATEST,
    "io.modelcontextprotocol/clientInfo": {"name": "a test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_door(module_platform: Platform) -> Door:
    return await open_door(module_platform, "retrieval", "executor", "tracing")


async def post(door: Door, message: Any, key: str | None = None, **headers: str) -> httpx2.Response:
    """Send one message as a client that keeps no state."""
    async with httpx2.AsyncClient(timeout=30) as http:
        sent = {"content": message} if isinstance(message, bytes) else {"json": message}
        return await http.post(door.url, headers={**ACCEPT, **door.headers(key), **headers}, **sent)


def shake(version: str) -> dict[str, Any]:
    """Return the first message of a client of an older protocol."""
    client = {"name": "old", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def result(response: httpx2.Response) -> Any:
    """Return what the one event of an answer says."""
    assert response.status_code == 200, response.text
    [data] = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return httpx2.Response(200, content=data).json()["result"]


async def test_a_key_is_needed_and_a_revoked_one_is_refused(door: Door, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remembered, "FRESH_S", 0.0)
    key = await door.key()

    good = await post(door, PING, key)
    nobody = await post(replace(door, own_key=None), PING)
    await revoke_key(await door.platform.store("gateway", max_size=1), door.platform.tenant, key)
    revoked = await post(door, PING, key)

    assert [one.status_code for one in (good, nobody, revoked)] == [200, 401, 401]
    assert nobody.headers["www-authenticate"] == revoked.headers["www-authenticate"]
    assert nobody.headers["www-authenticate"].startswith("Bearer resource_metadata=")
    assert revoked.json()["code"] == "unauthorized"


async def test_a_key_without_read_is_refused(door: Door):
    refused = await post(door, PING, await door.key("approve"))

    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


async def test_another_tenant_sees_nothing_of_it(door: Door, shared_door: Door):
    other = await shared_door.for_new_tenant()
    await index_document(door.platform, "tides", "tides.md", "High water follows the moon.")

    async with door.client() as client:
        answered = await client.call_tool("run_agent", {"agent": "assistant", "input": "hello"})
        job_id = answered.structured_content["job_id"]
    async with other.client() as client:
        listed = (await client.list_resources()).resources
        found = await client.call_tool("search_knowledge", {"query": "high water"})
        waited = await client.call_tool("wait_for_job", {"job_id": job_id})
        with pytest.raises(Exception, match="there is no resource"):
            await client.read_resource(f"job://{job_id}/result")
        with pytest.raises(Exception, match="there is no resource"):
            await client.read_resource("document://tides")

    assert listed == []
    assert "moon" not in found.content[0].text
    assert waited.meta["wayline/error"] == "not_found"


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize(
    "header", cases([{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}])
)
async def test_a_web_page_of_another_site_is_refused(platform: Platform, header: dict[str, str]):
    door = await open_door(platform)

    refused = await post(door, PING, **header)

    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


async def test_with_a_key_only_named_origins_are_served(door: Door):
    origins = ("https://chat.example", "http://localhost:3000", "https://evil.example", "http://chat.example")

    async with door.another(mcp_origins=("https://chat.example",)) as choosy:
        statuses = {origin: (await post(choosy, PING, Origin=origin)).status_code for origin in origins}

    assert list(statuses.values()) == [200, 200, 403, 403]


async def test_an_unreadable_body_is_an_error_of_the_protocol(door: Door):
    async with door.another(body_max_bytes=1_000) as narrow:
        torn = await post(narrow, b'{"jsonrpc"')
        half = await post(narrow, rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}')
        batch = await post(narrow, [PING], **{"MCP-Protocol-Version": LATEST})
        large = await post(narrow, {**PING, "params": {"x": "y" * 2_000}})

    assert [one.status_code for one in (torn, half, batch, large)] == [400, 400, 400, 413]
    assert [one.json()["error"]["code"] for one in (torn, half, batch)] == [-32700, -32700, -32600]
    assert large.json()["code"] == "body_too_large"


async def test_without_a_session_there_is_no_stream_and_none_to_end(door: Door):
    async with httpx2.AsyncClient(headers=door.headers()) as http:
        answers = [await http.request(method, door.url, headers=ACCEPT) for method in ("GET", "DELETE")]

    assert [(one.status_code, one.headers["allow"]) for one in answers] == [(405, "POST"), (405, "POST")]


@pytest.mark.parametrize("version", cases(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]))
async def test_an_old_client_shakes_hands_and_goes_on_at_any_replica(door: Door, version: str):
    hello = await post(door, shake(version))
    session = {"Mcp-Session-Id": hello.headers["mcp-session-id"]}
    if version >= "2025-06-18":
        session["MCP-Protocol-Version"] = version
    async with door.another() as other:
        ready = await post(other, {"jsonrpc": "2.0", "method": "notifications/initialized"}, **session)
        listed = await post(other, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **session)
    time = {"name": "get_current_time", "arguments": {}}
    called = await post(door, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": time}, **session)

    assert (result(hello)["protocolVersion"], result(hello)["serverInfo"]["name"]) == (version, "wayline")
    assert ready.status_code == 202
    assert "run_agent" in {tool["name"] for tool in result(listed)["tools"]}
    assert "(" in result(called)["content"][0]["text"]


async def test_a_protocol_that_nobody_speaks_is_refused_with_those_we_do(door: Door):
    about = {"io.modelcontextprotocol/protocolVersion": "2031-01-01", "io.modelcontextprotocol/clientCapabilities": {}}
    discover = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": about}}

    refused = await post(door, discover, **{"MCP-Protocol-Version": "2031-01-01", "Mcp-Method": "server/discover"})

    assert refused.status_code == 400
    assert LATEST in refused.json()["error"]["data"]["supported"]


async def test_a_header_that_differs_from_its_argument_is_refused(door: Door, monkeypatch: pytest.MonkeyPatch):
    region = {"type": "string", "x-mcp-header": "Region"}
    tool = BusTool(name="ship", effect=Effect.READ, input_schema={"type": "object", "properties": {"region": region}})
    announcement = AnnounceTools(
        tenant=door.platform.tenant, service="shop", instance="one", started_at=datetime.now(UTC), tools=(tool,)
    )
    await door.platform.bus.nc.request(announcement.subject, announcement.to_wire(), timeout=5)

    async def never(self: Offers, caller: Caller) -> list[Tool]:
        raise AssertionError("a call lists all tools")

    monkeypatch.setattr(Offers, "listed", never)
    # Nobody answers for the tool.
    monkeypatch.setattr(bus_service, "SILENT_MAX_S", 0.3)
    params = {"name": "shop__ship", "arguments": {"region": "north"}, "_meta": ABOUT}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    spoken = {"MCP-Protocol-Version": LATEST, "Mcp-Method": "tools/call", "Mcp-Name": "shop__ship"}
    wrong = await post(door, call, **spoken, **{"Mcp-Param-Region": "south"})
    right = await post(door, call, **spoken, **{"Mcp-Param-Region": "north"})

    assert (wrong.status_code, "Mcp-Param-Region" in wrong.text) == (400, True)
    assert right.status_code == 200, right.text
