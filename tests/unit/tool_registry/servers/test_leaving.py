"""A connection that is left ends, also where its tools are to be asked for at the same moment."""

from __future__ import annotations

import asyncio

import pytest

from wayline.contracts.server_config import ServerSettings
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.servers.mcp_server import McpServer
from wayline.tool_registry.settings import Settings

ENDED_WITHIN_S = 5.0


@pytest.mark.parametrize("turns", range(5))
async def test_a_connection_woken_as_it_is_left_ends(turns: int):
    server = McpServer(ServerSettings(name="s", url="http://127.0.0.1:9/mcp"), Settings(), Arguments())

    async def stay() -> None:
        while not await server._is_lost(within_s=600):
            server._woken.clear()

    staying = asyncio.create_task(stay())
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    server.learn_again()
    for _ in range(turns):
        await asyncio.sleep(0)
    staying.cancel()
    ended, left = await asyncio.wait({staying}, timeout=ENDED_WITHIN_S)
    for task in left:
        task.cancel()

    assert ended == {staying}
