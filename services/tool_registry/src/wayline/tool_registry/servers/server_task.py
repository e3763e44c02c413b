"""The task that keeps one server usable, however it is connected."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from wayline.tool_registry.definitions.tool_catalogue import Tool

log = structlog.get_logger()

CLOSE_S = 5.0


class ServerTask:
    """Runs a server's task from start to stop, and knows the server's tools and whether it can be called."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tools: dict[str, Tool] = {}
        self.instructions = ""
        """The server's description of itself and of how to use its tools."""
        self.names: dict[str, str] = {}
        """Our names for all tools that the server offers, by its own."""
        self.withheld: dict[str, str] = {}
        """Why each tool that the server offers must not be used, by our name for it."""
        self.left_out: dict[str, str] = {}
        """Why each tool that the server offers cannot be used as it is defined, by the server's name for it."""
        self.tried = asyncio.Event()
        """Set once the server could be called, or could not be reached."""
        self.listed = asyncio.Event()
        """Set once its tools are known, or it could not be reached."""
        self.known = False
        """Whether its tools are known: it was reached, or they were approved before."""
        self._usable = asyncio.Event()
        self._waiting_calls = 0
        self._called = asyncio.Event()
        """Set while calls wait for the server."""
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"mcp server {self.name}")
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        # A flag beside the cancellation: the library may raise something else in its place while it connects.
        self._closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=CLOSE_S)

    async def ready(self, within_s: float) -> bool:
        """Return whether the server can be called, after waiting a little for one that cannot."""
        if not self._usable.is_set():
            self._waiting_calls += 1
            self._called.set()
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(within_s):
                        await self._usable.wait()
            finally:
                self._waiting_calls -= 1
                if not self._waiting_calls:
                    self._called.clear()
        return self._usable.is_set()

    def tell_cancelled(self, key: str) -> None:
        """Pass over that a call was cancelled: its request is cut where the tool does not end by itself."""

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Say why the server cannot be used for good, where its task fails."""
        if not task.cancelled() and not self._closing and (error := task.exception()) is not None:
            log.error("mcp server has failed", server=self.name, error=repr(error), exc_info=error)

    async def _run(self) -> None:
        """Make the server usable, and keep it so."""
        raise NotImplementedError
