"""Open a session with an MCP server and leave it, each within a time limit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from wayline.tool_registry.connection.questions import Questions
from wayline.tool_registry.errors import NotBegun

if TYPE_CHECKING:
    from mcp import Client, ClientSession

LEAVE_S = 15.0
"""How long leaving a server may take: one that hangs does not answer a farewell either."""


@asynccontextmanager
async def entered(client: Client, *, within_s: float) -> AsyncIterator[None]:
    """Connect within a time limit that ends when the connection stands, and leave within another."""
    try:
        async with asyncio.timeout(within_s):
            await client.__aenter__()
    except TimeoutError:
        raise NotBegun(f"no connection within {within_s:g} s") from None
    try:
        yield
    except BaseException:
        async with asyncio.timeout(LEAVE_S):
            if not await client.__aexit__(*sys.exc_info()):
                raise
    else:
        async with asyncio.timeout(LEAVE_S):
            await client.__aexit__(None, None, None)


@asynccontextmanager
async def another(client: Client, target: Any, questions: Questions) -> AsyncIterator[ClientSession]:
    """Open a second session with the same server, by what the first one has found out."""
    from mcp import Client

    discovered = client.session.discover_result
    async with Client(
        target,
        mode=client.protocol_version,
        prior_discover=discovered,
        cache=None,
        elicitation_callback=questions.hear,
    ) as fresh:
        yield fresh.session
