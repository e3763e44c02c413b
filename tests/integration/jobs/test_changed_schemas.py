"""A tool whose schema changes while a job thinks: what only the schema of before refused is asked for."""

from __future__ import annotations

import asyncio
from typing import Literal

from mcp.server import MCPServer

from wayline.contracts.tools import ListTools, ToolList
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform, until
from wayline.testkit.mcp_servers import serving

from .conftest import chatting, until_listed, with_tools


async def test_a_call_that_only_an_old_schema_refuses_is_asked_for(platform: Platform):
    bank, paid, changed = MCPServer("bank"), list[str](), asyncio.Event()

    def pay_little(sum: Literal["little"]) -> str:
        paid.append(sum)
        return "paid"

    def pay_much(sum: Literal["little", "much"]) -> str:
        paid.append(sum)
        return "paid"

    bank.add_tool(pay_little, name="pay")
    calls = Say(text="I pay", tools=(("bank__pay", {"sum": "much"}),), hold=changed)
    async with serving(bank) as url, ChatServer(turns(calls, Say(text="done"))) as chat:
        tools = with_tools({"name": "bank", "url": url}, probe_every_s=0.1)
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat), tool_registry=tools)
        await until_listed(platform, "bank__pay")
        await platform.put_agent("careful", ask="writes")
        await platform.submit("j1", agent="careful", model="chat/m")
        await until(lambda: chat.calls, why="the model is called with the schema of before")
        bank.remove_tool("pay")
        bank.add_tool(pay_much, name="pay")
        await relisted(platform)
        changed.set()

        [asked] = (await platform.wait_until_parked("j1")).tools.pending
        assert (asked.arguments, paid) == ({"sum": "much"}, [])

        await platform.decide("j1", asked.approval_id)
        assert (await platform.wait_for("j1")).status == "completed"
    assert paid == ["much"]


async def relisted(platform: Platform) -> None:
    async def known() -> bool:
        listed = await platform.bus.ask(ListTools(tenant="default", patterns=("bank__*",)), ToolList)
        return any("much" in str(tool.input_schema) for tool in listed.tools)

    await until(known, why="the registry has seen the change")
