"""What a change of an MCP server touches: agents, parked jobs and recorded calls of its own tenant, counted exactly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import mcp_types as types
import pytest
import pytest_asyncio
from mcp.server.lowlevel import Server

from wayline.contracts.errors import Reject
from wayline.contracts.mcp_servers import (
    DeleteServer,
    GetImpact,
    GetServer,
    PutServer,
    ServerDeleted,
    ServerImpact,
    ServerView,
)
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.tool_use import AgentVersion, GetToolUse, ToolUse
from wayline.contracts.tools import ListTools, ToolList
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform, until
from wayline.testkit.mcp_servers import serving
from wayline.tracing.settings import Settings as TracingSettings

from .conftest import chatting, with_tools
from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
SMALL = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 5}}, "required": ["amount"]}

UNUSABLE = {"type": "object", "properties": {"amount": {"type": "nonsense"}}}


class Bank:
    """A server whose tools a test changes."""

    def __init__(self) -> None:
        self.tools = {"pay": AMOUNT, "rate": {"type": "object"}}
        self.server: Server[Any] = Server("bank", on_list_tools=self._list, on_call_tool=self._call)

    async def _list(self, *_: object) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name=name, description=name, input_schema=schema) for name, schema in self.tools.items()]
        )

    async def _call(self, *_: object) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="done")])


def pays(*amounts: int) -> Any:
    """A model that pays these amounts beside each other, looks up a rate, then answers."""
    return turns(
        Say(tools=tuple(("bank__pay", {"amount": amount}) for amount in amounts)),
        Say(tools=(("bank__rate", {}),)),
        Say(text="done"),
    )


counts = turns(Say(tools=(("calculator", {"expression": "1+1"}),)), Say(text="done"))


def plan(text: str) -> Any:
    return {"two": pays(3, 9), "one": pays(4), "ask": pays(1), "other": pays(100, 200, 300), "count": counts}[text]


def by_input(body: Any) -> Any:
    said = (message["content"] for message in reversed(body["messages"]) if message["role"] == "user")
    # What the platform adds in the user's name, as before a job's last call, is labelled: `[CONTEXT] …`.
    asked = next(text for text in said if not text.startswith("["))
    return plan(asked.partition("\n")[0])(body)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(module_platform: Platform) -> AsyncIterator[Platform]:
    """Services whose model does what the input of its job names."""
    async with ChatServer(by_input) as chat:
        await module_platform.start(
            *("router", "executor", "tool_registry", "tracing"),
            executor=chatting(chat),
            tool_registry=with_tools(server_allowed_hosts=["127.0.0.1:*"], probe_every_s=0.1),
            tracing=TracingSettings(linger_ms=5),
        )
        yield module_platform
        assert await differences(module_platform.bus) == []


@dataclass
class Used:
    """Two tenants that have the same bank: one paid 3, 9 and 4 and waits to pay 1, the other paid three times."""

    bank: Bank
    mine: Platform
    theirs: Platform


@pytest_asyncio.fixture(loop_scope="module")
async def used(services: Platform) -> AsyncIterator[Used]:
    used = Used(Bank(), await services.new_tenant(), await services.new_tenant())
    async with serving(used.bank.server) as url:
        for platform in (used.mine, used.theirs):
            await put_server(platform, url)
            await platform.put_agent("payer", tools=("bank__pay", "bank__rate"))
        await used.mine.put_agent("careful", tools=("bank__*",), ask="always")
        await used.mine.put_agent("idle", tools=("calculator",))
        for platform, job, text in ((used.mine, "j1", "two"), (used.mine, "j2", "one"), (used.theirs, "j1", "other")):
            await platform.submit(job, text, agent="payer", model="chat/m")
            await platform.wait_for(job)
        await used.mine.submit("j3", "ask", agent="careful", model="chat/m")
        await used.mine.wait_until_parked("j3")
        await until_traced(used.mine, calls=6, parked=1)
        await until_traced(used.theirs, calls=4, parked=0)
        yield used


async def put_server(platform: Platform, url: str) -> None:
    config = ServerConfig.model_validate({"url": url, "effects": {"pay": "once", "rate": "read"}, "untrusted": False})
    await platform.bus.ask(PutServer(tenant=platform.tenant, name="bank", config=config), ServerView)

    async def listed() -> bool:
        found = await platform.bus.ask(ListTools(tenant=platform.tenant, patterns=("bank__*",)), ToolList)
        return len(found.tools) == 2

    await until(listed, why="the bank's tools are listed")


async def until_traced(platform: Platform, *, calls: int, parked: int) -> None:
    """Wait until tracing has this many calls of the bank and as many parked jobs."""

    async def traced() -> bool:
        tools, since = ("bank__pay", "bank__rate"), datetime(2020, 1, 1, tzinfo=UTC)
        ask = GetToolUse(tenant=platform.tenant, tools=tools, since=since)
        use = await platform.bus.ask(ask, ToolUse)
        return sum(one.calls for one in use.counts) == calls and len(use.parked) == parked

    await until(traced, why=f"tracing has {calls} calls")


async def impact(platform: Platform, config: ServerConfig | None = None, name: str = "bank") -> ServerImpact:
    ask = GetImpact(tenant=platform.tenant, name=name, config=config)
    return await platform.bus.ask(ask, ServerImpact, timeout_s=30)


async def test_impact_counts_exactly_what_the_tenant_uses(used: Used):
    mine, theirs = await impact(used.mine), await impact(used.theirs)

    assert [(one.tool, one.change, one.calls) for one in mine.tools] == [
        ("bank__pay", "unchanged", 4),
        ("bank__rate", "unchanged", 2),
    ]
    assert (mine.calls, mine.jobs, mine.would_fail, mine.unchecked) == (6, 3, 0, 0)
    # The bundled agent may use every tool; `idle` may not use the bank's.
    assert {one.name for one in mine.agents} == {"assistant", "careful", "payer"}
    assert mine.agents_total == 3
    assert [(one.job_id, one.agent, one.waits_for_tool) for one in mine.parked] == [("j3", "careful", True)]
    assert mine.parked_total == 1
    assert [one.calls for one in theirs.tools] == [3, 1]
    assert (theirs.jobs, theirs.agents_total, theirs.parked_total) == (1, 2, 0)
    assert AgentVersion(name="careful", version=1) not in theirs.agents


async def test_recorded_calls_that_the_waiting_schema_refuses_are_named(used: Used):
    used.bank.tools["pay"] = SMALL
    del used.bank.tools["rate"]
    await until_seen(used, tools=0, quarantined=1)

    found = await impact(used.mine)
    theirs = await impact(used.theirs)

    assert {one.tool: (one.change, one.calls, one.would_fail) for one in found.tools} == {
        "bank__pay": ("changed", 4, 1),
        "bank__rate": ("gone", 2, 2),
    }
    assert (found.would_fail, found.unchecked) == (3, 0)
    assert {(one.job_id, one.tool, one.why) for one in found.failing} == {
        ("j1", "bank__pay", "amount: 9 is greater than the maximum of 5"),
        ("j1", "bank__rate", "the server offers it no more"),
        ("j2", "bank__rate", "the server offers it no more"),
    }
    assert theirs.tools[0].would_fail == 3


async def until_seen(used: Used, *, tools: int, quarantined: int) -> None:
    for platform in (used.mine, used.theirs):

        async def is_so(platform: Platform = platform) -> bool:
            view = await platform.bus.ask(GetServer(tenant=platform.tenant, name="bank"), ServerView)
            return (view.tools, view.quarantined) == (tools, quarantined)

        await until(is_so, why="the change is seen")


async def test_an_unsaved_configuration_is_compared_and_nothing_is_stored(used: Used):
    other = Bank()
    other.tools = {"pay": SMALL, "refund": AMOUNT}
    async with serving(other.server) as url:
        found = await impact(used.mine, config=ServerConfig(url=url))
    with pytest.raises(Reject, match="cannot be used"):
        await impact(used.mine, config=ServerConfig(url="http://127.0.0.1:9/mcp"))
    saved = await used.mine.bus.ask(GetServer(tenant=used.mine.tenant, name="bank"), ServerView)

    assert {one.tool: (one.change, one.calls, one.would_fail) for one in found.tools} == {
        "bank__pay": ("changed", 4, 1),
        "bank__rate": ("gone", 2, 2),
        "bank__refund": ("new", 0, 0),
    }
    assert (saved.tools, saved.quarantined) == (2, 0)


async def test_a_tool_with_an_unusable_schema_is_not_gone(used: Used):
    other = Bank()
    other.tools = {"pay": UNUSABLE, "rate": {"type": "object"}}
    async with serving(other.server) as url:
        unsaved = await impact(used.mine, config=ServerConfig(url=url))
        await used.mine.bus.ask(DeleteServer(tenant=used.theirs.tenant, name="bank"), ServerDeleted)
        saving = PutServer(tenant=used.theirs.tenant, name="bank", config=ServerConfig(url=url))
        await used.mine.bus.ask(saving, ServerView)
        await until_connected(used.theirs)
        saved = await impact(used.theirs)

    pay, rate = unsaved.tools
    assert (pay.change, pay.calls, pay.would_fail) == ("changed", 4, 4)
    assert pay.unusable.startswith("its schema cannot be used ($.properties.amount.type: 'nonsense' is not")
    assert (rate.change, rate.unusable) == ("unchanged", "")
    pay, rate = saved.tools
    assert (pay.change, pay.calls, pay.would_fail, pay.unusable[:10]) == ("unchanged", 3, 3, "its schema")
    assert (rate.change, rate.unusable) == ("unchanged", "")


async def until_connected(platform: Platform) -> None:
    async def is_so() -> bool:
        view = await platform.bus.ask(GetServer(tenant=platform.tenant, name="bank"), ServerView)
        return view.state == "connected"

    await until(is_so, why="the bank is connected")


async def test_impact_of_built_in_tools_counts_their_calls(services: Platform):
    platform = await services.new_tenant()
    await platform.put_agent("counter", tools=("calculator",))
    await platform.submit("j1", "count", agent="counter", model="chat/m")
    await platform.wait_for("j1")

    async def counted() -> bool:
        return (await impact(platform, name="builtin")).calls == 1

    await until(counted, why="tracing has the call")
    found = await impact(platform, name="builtin")

    assert {one.tool: one.calls for one in found.tools if one.calls} == {"calculator": 1}
    assert "counter" in {one.name for one in found.agents}
    assert found.jobs == 1


async def test_a_parked_job_counts_by_its_own_agent_version(used: Used):
    await used.mine.put_agent("careful", tools=("calculator",))

    found = await impact(used.mine)

    assert {one.name for one in found.agents} == {"assistant", "payer"}
    assert [(one.job_id, one.agent_version) for one in found.parked] == [("j3", 1)]
