"""What a caller proves itself with stays at the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from mcp.server import MCPServer

from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform
from wayline.testkit.mcp_servers import serving

from ..jobs.conftest import chatting, until_listed, with_tools
from .conftest import open_door

MODEL = "chat/gemini-3.5-flash-lite"


@asynccontextmanager
async def overheard(url: str, heard: bytearray) -> AsyncIterator[str]:
    """Pass on connections to a server, and keep every byte that is sent to it."""
    to = urlsplit(url)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, keep: bool) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(65_536):
                if keep:
                    heard.extend(piece)
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(to.hostname, to.port)
        await asyncio.gather(
            pass_on(reader, inner_writer, keep=True), pass_on(inner_reader, writer, keep=False), return_exceptions=True
        )

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{to.path}"
    finally:
        server.close()


async def test_a_callers_key_reaches_no_tool_and_no_model(platform: Platform):
    bank = MCPServer("bank")

    @bank.tool()
    def rate(currency: str) -> str:
        """Tell a rate."""
        return f"1 {currency}"

    plan = turns(Say(tools=(("bank__rate", {"currency": "CHF"}),)), Say(text="one"))
    by_tools, by_model = bytearray(), bytearray()
    async with (
        serving(bank) as bank_url,
        overheard(bank_url, by_tools) as tools_url,
        ChatServer(plan) as chat,
        overheard(chat.url, by_model) as chat_url,
    ):
        chat_settings = chatting(chat).model_copy(update={"chat_base_url": chat_url})
        server = {"name": "bank", "url": tools_url, "effects": {"rate": "read"}}
        door = await open_door(platform, "executor", executor=chat_settings, registry=with_tools(server))
        await until_listed(platform, "bank__rate")
        await platform.put_agent("helper", model=MODEL, tools=("bank__*",))
        key = await door.key()
        async with door.client(key) as client:
            direct = await client.call_tool("bank__rate", {"currency": "EUR"})
            answered = await client.call_tool("run_agent", {"agent": "helper", "input": "go"})

    assert (direct.is_error, answered.content[0].text) == (False, "one")
    assert b"CHF" in by_tools and b"EUR" in by_tools and b"model" in by_model
    secret = key.rpartition(".")[2].encode()
    assert len(secret) > 20
    assert secret not in by_tools and secret not in by_model
