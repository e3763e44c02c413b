"""No job begins without a tool that its agent names while registries start, unless its result says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp.server.lowlevel import Server

from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.events import ModelRequested
from wayline.contracts.mcp_servers import PutServer, ServerView
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.tools import ListTools, ToolList
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until
from wayline.testkit.mcp_servers import serving

from .conftest import until_listed, with_tools

JOBS = 6


class SlowServer:
    """An MCP server that answers nothing while it is held."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.asked = asyncio.Event()
        self._server: Server[Any] = Server("slow", on_list_tools=self._list, on_call_tool=self._call)

    def hold(self) -> None:
        """Answer nothing from now on."""
        self.open.clear()
        self.asked.clear()

    def streamable_http_app(self) -> Any:
        """Return the application that `serving` serves."""
        app = self._server.streamable_http_app()

        async def held(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.asked.set()
                await self.open.wait()
            await app(scope, receive, send)

        return held

    async def _list(self, *_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema={"type": "object"})])

    async def _call(self, *_: object) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="done")])


@asynccontextmanager
async def slow_server() -> AsyncIterator[tuple[SlowServer, str]]:
    slow = SlowServer()
    async with serving(slow) as url:
        try:
            yield slow, url
        finally:
            slow.open.set()


def executor(chat: ChatServer, wait_s: float = 60.0) -> ExecutorSettings:
    return ExecutorSettings(chat_base_url=chat.url, tools_fresh_s=0, absent_tools_wait_s=wait_s)


async def put_agent(platform: Platform, *tools: str) -> None:
    config = AgentConfig(tools=tools)
    await platform.bus.ask(PutAgent(tenant="default", name="slow", config=config), Agent)


async def begun_with(platform: Platform, job_id: str) -> ModelRequested:
    """Return the first request of a job."""
    return next(event for event in await platform.events(job_id) if isinstance(event, ModelRequested))


async def submit_all(platform: Platform) -> list[str]:
    names = [f"j{number}" for number in range(JOBS)]
    for name in names:
        await platform.submit(name, agent="slow")
    return names


async def require_whole(platform: Platform, names: list[str]) -> None:
    for name in names:
        ended = await platform.wait_for(name)
        first = await begun_with(platform, name)
        assert ended.status == "completed"
        assert "slow__echo" in {tool.name for tool in first.tools or ()}
        assert (first.absent, ended.reason) == ((), None)


@pytest.mark.parametrize("replicas", [1, 2])
async def test_jobs_have_approved_tools_while_registries_restart(platform: Platform, replicas: int):
    async with slow_server() as (slow, url), ChatServer(lambda _: Say(text="Yes.")) as chat:
        registry = with_tools(list_within_s=0.2, server_allowed_hosts=["127.0.0.1:*"])
        await platform.start("router", "tool_registry", tool_registry=registry)
        await put_agent(platform, "slow__*")
        config = ServerConfig(url=url)
        await platform.bus.ask(PutServer(tenant="default", name="slow", config=config), ServerView)
        await until_listed(platform, "slow__echo")
        slow.hold()
        if replicas == 2:
            await platform.stop("tool_registry")
        # One of two replicas starts anew, or both.
        for _ in range(replicas):
            await platform.start("tool_registry", tool_registry=registry)
        await platform.start("executor", executor=executor(chat))

        await require_whole(platform, await submit_all(platform))


async def test_jobs_wait_for_a_server_that_no_registry_has_reached(platform: Platform):
    async with slow_server() as (slow, url), ChatServer(lambda _: Say(text="Yes.")) as chat:
        slow.hold()
        registry = with_tools({"name": "slow", "url": url}, list_within_s=0.1)
        await platform.start("router", "executor", "tool_registry", tool_registry=registry, executor=executor(chat))
        await put_agent(platform, "slow__*")
        names = await submit_all(platform)
        await asyncio.wait_for(slow.asked.wait(), 20)
        listed = await platform.bus.ask(ListTools(tenant="default", patterns=("slow__*",)), ToolList)

        assert [(one.name, one.known, one.tried) for one in listed.away] == [("slow", False, False)]
        assert "it is connecting MCP servers: slow" in (await platform.services["tool_registry"].ready())["mcp servers"]
        slow.open.set()
        await require_whole(platform, names)

        async def is_ready() -> bool:
            return (await platform.services["tool_registry"].ready())["mcp servers"] == "ok"

        await until(is_ready, why="the registry is ready")


async def test_a_job_that_begins_without_a_named_tool_says_so(platform: Platform):
    async with slow_server() as (slow, url), ChatServer(lambda _: Say(text="Yes.")) as chat:
        slow.hold()
        registry = with_tools({"name": "slow", "url": url}, list_within_s=0.1)
        settings = executor(chat, wait_s=0)
        await platform.start("router", "executor", "tool_registry", tool_registry=registry, executor=settings)
        await put_agent(platform, "slow__*", "calculator")
        await platform.submit("j1", agent="slow")
        ended = await platform.wait_for("j1")
        first = await begun_with(platform, "j1")

    assert first.absent == ("slow",)
    assert (ended.status, ended.partial) == ("completed", False)
    assert ended.reason == "the job began without the tools of slow: not reached at that time"


async def test_an_agent_of_all_tools_waits_for_no_server_that_failed(platform: Platform):
    async with ChatServer(lambda _: Say(text="Yes.")) as chat:
        registry = with_tools({"name": "broken", "url": "http://127.0.0.1:1/mcp"})
        await platform.start("router", "executor", "tool_registry", tool_registry=registry, executor=executor(chat))
        await put_agent(platform, "*")

        async def tried() -> bool:
            listed = await platform.bus.ask(ListTools(tenant="default"), ToolList)
            return [(one.name, one.known, one.tried) for one in listed.away] == [("broken", False, True)]

        await until(tried, why="the server was tried")
        await platform.submit("j1", agent="slow")
        ended = await platform.wait_for("j1")
        first = await begun_with(platform, "j1")

    assert first.absent == ("broken",)
    assert (ended.status, ended.reason) == ("completed", None)
