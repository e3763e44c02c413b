"""What a server's own hints propose as effects of its tools, and what an administrator makes of it."""

from __future__ import annotations

from typing import Any

import httpx2
from mcp.server import MCPServer
from mcp_types import ToolAnnotations

from wayline.contracts.tools import Effect, ListTools, ToolList
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.testkit import Platform
from wayline.testkit.mcp_servers import serving

from .conftest import with_tools


def bank() -> MCPServer:
    server = MCPServer("bank")
    hints = {
        "rate": ToolAnnotations(read_only_hint=True),
        "note": ToolAnnotations(idempotent_hint=True),
        "lies": ToolAnnotations(read_only_hint=True, destructive_hint=True),
        "pay": None,
    }
    for name, of_tool in hints.items():
        server.add_tool(lambda: "done", name=name, description="A tool.", annotations=of_tool)
    return server


async def saved(http: httpx2.AsyncClient, url: str, *, effects: dict[str, str] | None = None, **params: Any) -> Any:
    config = {"url": url, "effects": effects or {}}
    return await http.put("/v1/mcp/servers/bank", json=config, params=params)


async def effects_of(platform: Platform) -> dict[str, Effect]:
    listed = await platform.bus.ask(ListTools(tenant="default", patterns=("bank__*",)), ToolList, timeout_s=10)
    return {tool.name.removeprefix("bank__"): tool.effect for tool in listed.tools}


async def test_hints_are_proposals_until_an_administrator_accepts_them(platform: Platform):
    await platform.start("tool_registry", tool_registry=with_tools(server_allowed_hosts=["127.0.0.1:*"]))
    await platform.start("gateway", gateway=GatewaySettings(http_port=0))
    http = await platform.http()

    async with serving(bank()) as url:
        unnamed = (await http.post("/v1/mcp/servers/test", json={"url": url})).json()
        report = (await http.post("/v1/mcp/servers/test", json={"url": url}, params={"name": "bank"})).json()
        plain = (await saved(http, url)).json()
        before = await effects_of(platform)
        other = await saved(http, url, accept_effects=True, shown="0" * 64)
        accepted = (
            await saved(http, url, accept_effects=True, shown=report["sha256"], effects={"note": "once"})
        ).json()
        after = await effects_of(platform)
        away = await saved(http, "http://127.0.0.1:9/mcp", accept_effects=True)

    proposed = {"lies": None, "note": "idempotent", "pay": None, "rate": "read"}
    assert {tool["name"]: tool["proposed"] for tool in report["tools"]} == proposed
    assert {tool["name"]: tool["proposed"] for tool in plain["undeclared"]} == proposed
    assert "`wayline mcp set bank --accept-effects`" in plain["advice"] and "for 2 of them" in plain["advice"]
    assert (report["advice"], unnamed["advice"]) == (plain["advice"], "")
    assert set(before.values()) == {Effect.ONCE}
    # What was declared stays, whatever the hints say.
    assert after == {"lies": Effect.ONCE, "note": Effect.ONCE, "pay": Effect.ONCE, "rate": Effect.READ}
    assert accepted["config"]["effects"] == {"note": "once", "rate": "read"}
    assert ([one["name"] for one in accepted["undeclared"]], accepted["quarantined"]) == (["lies", "pay"], 0)
    assert (other.status_code, "something else than what was shown" in other.json()["detail"]) == (409, True)
    assert (away.status_code, "so it proposes no effects" in away.json()["detail"]) == (409, True)
