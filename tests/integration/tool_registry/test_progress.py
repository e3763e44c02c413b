"""How far a server says that a call is: told while the call runs, without secrets and without hidden characters."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from wayline.contracts.tools import PROGRESS_MAX_CHARS, Effect, ToolProgress
from wayline.testkit import until
from wayline.testkit.mcp_servers import serving

SECRET = "s3cret-key-of-the-bank"


class Bank:
    """A server that tells how far it is, and ends when the test lets it."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.mcp = MCPServer("bank")
        self.mcp.add_tool(self.move)
        self.told: list[tuple[float, float | None, str | None]] = [(3, 10, "three moved")]

    async def move(self, ctx: Context) -> str:  # type: ignore[type-arg]
        """Move it all."""
        for progress in self.told:
            await ctx.report_progress(*progress)
        await self.go.wait()
        return "moved"

    def streamable_http_app(self) -> Any:
        return self.mcp.streamable_http_app()


@pytest.mark.parametrize("effect", [Effect.READ, Effect.ONCE])
async def test_a_call_under_way_says_how_far_its_server_is(platform, effect: Effect):
    bank = Bank()
    async with serving(bank) as url:
        await platform.registry({"name": "bank", "url": url, "effects": {"move": effect}}, answer_within_s=0.1)
        ask = platform.ask("bank__move")

        async def told() -> bool:
            return (await platform.once(ask, timeout_s=2)).progress is not None

        await until(told, why="the server's word has come")
        reply = await platform.once(ask, timeout_s=2)
        bank.go.set()
        ended = await platform.call(ask)

    assert (reply.status, reply.progress) == (
        "in_progress",
        ToolProgress(progress=3, total=10, message="three moved"),
    )
    assert (ended.status, ended.content, ended.progress) == ("success", "moved", None)


async def test_progress_shows_no_secret_no_hidden_characters_and_no_novel(platform):
    bank = Bank()
    bank.told = [(1, None, f"key {SECRET}\u202e\n" + "long " * 200)]
    async with serving(bank) as url:
        server = {"name": "bank", "url": url, "effects": {"move": "read"}, "headers": {"Authorization": SECRET}}
        await platform.registry(server, answer_within_s=0.1)
        ask = platform.ask("bank__move")

        async def told() -> bool:
            return (await platform.once(ask, timeout_s=2)).progress is not None

        await until(told, why="the server's word has come")
        progress = (await platform.once(ask, timeout_s=2)).progress
        bank.go.set()
        await platform.call(ask)

    assert progress is not None
    assert SECRET not in progress.message and "\u202e" not in progress.message
    assert progress.message.startswith("key ") and len(progress.message) <= PROGRESS_MAX_CHARS
