"""A long job's log grows with what happened, not with what was said before."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server import MCPServer

from wayline.journal import JobLog
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit.mcp_servers import serving
from wayline.testkit.walks import length

from .conftest import chatting, with_tools

CALLS = length(300, short=60)
PAGE = "0123456789" * 500
THOUGHT = "word " * 240
TOKENS_MIN = CALLS * 667
"""Of a conversation of these pages, at four bytes each: 200,000 with all three hundred."""
LOG_MAX = CALLS * 14_000
"""Twice what is said once; what is said again in each step would be ten times this, or fifty."""


@asynccontextmanager
async def book() -> AsyncIterator[str]:
    """An MCP server with one tool whose every page has 5 KB."""
    mcp = MCPServer("book")

    @mcp.tool()
    def page(number: int) -> str:
        """Read a page."""
        return PAGE

    async with serving(mcp) as url:
        yield url


def reader(body) -> Say:
    """Turn a page, think a little, and so on."""
    turned = sum(message["role"] == "tool" for message in body["messages"])
    if turned < CALLS:
        return Say(text=THOUGHT, tools=(("book__page", {"number": turned + 1}),))
    return Say(text="the end")


async def test_a_log_of_many_pages_is_small_and_read_once(platform, monkeypatch):
    async with book() as url, ChatServer(reader) as chat:
        server = {"name": "book", "url": url, "effects": {"page": "read"}}
        await platform.start(
            "router", "executor", "tool_registry", executor=chatting(chat), tool_registry=with_tools(server)
        )

        await platform.submit("j1", model="chat/m", max_steps=CALLS + 1)

        ended = await platform.wait_for("j1", within=90)
        assert (ended.status, ended.answer, ended.steps) == ("completed", "the end", CALLS + 1)
        prompt = sum(len(str(message)) for message in chat.calls[-1][1]["messages"])
        assert prompt / 4 > TOKENS_MIN

        info = await platform.bus.js.stream_info("EVENTS")
        assert info.state.bytes < LOG_MAX
        requests = []
        publish = platform.bus.nc.publish

        async def counting(subject, *args, **kwargs):
            requests.append(subject)
            return await publish(subject, *args, **kwargs)

        monkeypatch.setattr(platform.bus.nc, "publish", counting)
        log = JobLog(platform.bus, "default", "j1")
        head = await log.last()
        assert head is not None
        requests.clear()
        records = await log.records(head.sequence)
        assert sum(len(record) for record in records) == head.seq
        assert len(requests) == 1
