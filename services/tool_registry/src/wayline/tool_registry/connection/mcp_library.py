"""Load the MCP library, which takes half a second, on a thread: the service is up before its tools are."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
import threading

from wayline.chassis.loop_pauses import keep_for_good, switch_often

MODULES = ("mcp", "mcp.server", "mcp.client.streamable_http")
QUIET = ("mcp.client", "httpx2")
"""Loggers that repeat what a server wrote and the URLs that were asked: both may hold secrets."""

# Two threads that import modules of one package in another order may meet each other's half-made ones.
_one_at_a_time = threading.Lock()


async def load() -> None:
    """Import everything that the adapters use."""
    await asyncio.to_thread(_import)


def _import() -> None:
    with _one_at_a_time:
        is_new = any(module not in sys.modules for module in MODULES)
        for module in MODULES:
            importlib.import_module(module)
        if is_new:
            keep_for_good()
            switch_often()
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)
