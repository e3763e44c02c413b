"""MCP servers that a test writes, served over HTTP on a socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from wayline.chassis.probes import server as http_server
from wayline.testkit.waiting import until

LEAVE_S = 1


@asynccontextmanager
async def serving(mcp: Any) -> AsyncIterator[str]:
    """Serve an MCP server on a free port, and yield its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    http = http_server(mcp.streamable_http_app(), host="127.0.0.1", port=port)
    http.config.lifespan = "on"
    # A client may hold a stream of changes open for as long as there is a server.
    http.config.timeout_graceful_shutdown = LEAVE_S
    task = asyncio.create_task(http.serve())
    try:
        await until(lambda: http.started, why="the MCP server listens")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        http.should_exit = True
        await task
