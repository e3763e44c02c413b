"""What a change of a service on the bus touches: its tools' agents and recorded calls, as of any server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.errors import Reject
from wayline.contracts.mcp_servers import GetImpact, ListServers, ServerImpact, ServerList
from wayline.contracts.tool_use import GetToolUse, ToolUse
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.sdk import Tools, bus_broker
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform, until
from wayline.tool_registry.settings import Settings as RegistrySettings
from wayline.tracing.settings import Settings as TracingSettings

TENANT = "default"


async def refund(number: str) -> str:
    """Pay an order back."""
    return f"paid back {number}"


async def look(number: str) -> str:
    """Look an order up."""
    return f"order {number}"


async def refund_with_reason(number: str, reason: str) -> str:
    """Pay an order back, for a reason."""
    return f"paid back {number}: {reason}"


refund_with_reason.__name__ = "refund"


@asynccontextmanager
async def offering(platform: Platform, *functions: Callable[..., Any]) -> AsyncIterator[None]:
    """Run a service `orders` that offers functions as tools."""
    tools = Tools("orders", broker=bus_broker(platform.nats.url))
    for function in functions:
        tools.tool(effect="once")(function)
    app = tools.application()
    await app.start()
    try:
        yield
    finally:
        await app.stop()


@asynccontextmanager
async def used(platform: Platform, **registry: Any) -> AsyncIterator[AsyncExitStack]:
    """Run a job that looked an order up once and paid two back, and leave the service."""
    paid = [("orders__refund", {"number": number}) for number in ("A-1", "A-2")]
    plan = turns(Say(tools=(("orders__look", {"number": "A-1"}), *paid)), Say(text="done"))
    async with ChatServer(plan) as chat, AsyncExitStack() as stack:
        await platform.start(
            *("router", "executor", "tool_registry", "tracing"),
            executor=ExecutorSettings(chat_base_url=chat.url),
            tool_registry=RegistrySettings(**registry),
            tracing=TracingSettings(linger_ms=5),
        )
        config = AgentConfig(tools=("orders__*",), ask="never")
        await platform.bus.ask(PutAgent(tenant=TENANT, name="clerk", config=config), Agent)
        await stack.enter_async_context(offering(platform, refund, look))
        await platform.submit("j1", agent="clerk", model="chat/m")
        assert (await platform.wait_for("j1")).status == "completed"

        async def traced() -> bool:
            ask = GetToolUse(tenant=TENANT, tools=("orders__refund", "orders__look"), since="2020-01-01T00:00:00Z")
            return sum(one.calls for one in (await platform.bus.ask(ask, ToolUse)).counts) == 3

        await until(traced, why="tracing has the calls")
        yield stack


async def impact(platform: Platform, tenant: str = TENANT) -> ServerImpact:
    return await platform.bus.ask(GetImpact(tenant=tenant, name="orders"), ServerImpact, timeout_s=30)


def changes(found: ServerImpact) -> dict[str, tuple[str, int, int]]:
    return {one.tool: (one.change, one.calls, one.would_fail) for one in found.tools}


async def test_impact_of_a_service_counts_what_uses_it(platform: Platform):
    async with used(platform) as service:
        there = await impact(platform)
        with pytest.raises(Reject):
            await impact(platform, "acme")
        await service.aclose()
        away = await impact(platform)

    assert changes(there) == {"orders__look": ("unchanged", 1, 0), "orders__refund": ("unchanged", 2, 0)}
    assert (there.calls, there.jobs, there.would_fail) == (3, 1, 0)
    assert {one.name for one in there.agents} == {"assistant", "clerk"}
    # That none of its processes runs now is no change.
    assert changes(away) == changes(there)


async def test_calls_that_a_services_new_version_refuses_are_named(platform: Platform):
    async with used(platform) as service:
        await service.aclose()
        async with offering(platform, refund_with_reason):
            found = await impact(platform)

    assert changes(found) == {"orders__look": ("gone", 1, 1), "orders__refund": ("changed", 2, 2)}
    assert (found.would_fail, found.unchecked) == (3, 0)
    assert {one.why for one in found.failing} == {
        "the server offers it no more",
        "'reason' is a required property",
    }


async def test_a_trusted_service_is_listed_and_has_an_impact(platform: Platform):
    async with used(platform, trusted_services=("default/*",)):
        found = await impact(platform)
        servers = (await platform.bus.ask(ListServers(tenant=TENANT), ServerList)).servers

    assert changes(found) == {"orders__look": ("unchanged", 1, 0), "orders__refund": ("unchanged", 2, 0)}
    [view] = [one for one in servers if one.name == "orders"]
    assert (view.state, view.tools, view.quarantined, view.saved_at) == ("connected", 2, 0, None)
