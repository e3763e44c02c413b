"""Hear from a server that its tools have changed: by a notification, since MCP 2026-07-28 on a stream asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from wayline.chassis.concurrency.awaited_tasks import stopped

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.session import IncomingMessage

log = structlog.get_logger()

CHANGED_PAUSE_S = 0.25
"""How long after a change the tools are asked for: a server that announces many tools one by one is asked once."""
CHANGED_PAUSE_MAX_S = 30.0
"""The same for a server that announces changes without end."""
QUIET_S = 5.0
"""How long after its tools were asked for a server is silent that is then heard at once again."""
LISTEN_AGAIN_S = 5.0
"""How long after a stream of changes has ended the next one is opened; meanwhile the poll finds changes."""


class ChangePause:
    """The pause before tools are asked for again: it doubles while a server goes on announcing changes."""

    def __init__(self) -> None:
        self._pause_s = CHANGED_PAUSE_S
        self._asked_at: float | None = None

    def after_change(self, now: float) -> float:
        """Return how long to wait after a change that is the first since the tools were asked for."""
        if self._asked_at is None or now - self._asked_at > max(QUIET_S, self._pause_s):
            self._pause_s = CHANGED_PAUSE_S
        else:
            self._pause_s = min(2 * self._pause_s, CHANGED_PAUSE_MAX_S)
        self._asked_at = now + self._pause_s
        return self._pause_s


class ToolChanges:
    """Calls back once for all changes that a server reports within a moment."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._pending: asyncio.TimerHandle | None = None
        self._pause = ChangePause()

    async def hear(self, message: IncomingMessage) -> None:
        """Take in a server's notification that its tools have changed, and pass over every other message."""
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._note()

    @asynccontextmanager
    async def listening(self, client: Client, *, within_s: float) -> AsyncIterator[None]:
        """Keep a stream of changes open where the server's protocol has one and the server announces changes."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        can = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or can is None or not can.list_changed:
            yield
            return
        task = asyncio.create_task(self._listen(client, within_s), name="listening for changes of tools")
        try:
            yield
        finally:
            await stopped(task)

    async def _listen(self, client: Client, within_s: float) -> None:
        from mcp.client.subscriptions import SubscriptionLost

        while True:
            try:
                await self._hear_stream(client, within_s)
            except SubscriptionLost:
                pass
            except Exception as error:
                # A server is foreign code. One that refuses the stream is asked for its tools every so often.
                log.info("changes of a server's tools are found by the poll alone", why=type(error).__name__)
                return
            await asyncio.sleep(LISTEN_AGAIN_S)

    async def _hear_stream(self, client: Client, within_s: float) -> None:
        async with asyncio.timeout(within_s) as limit, client.listen(tools_list_changed=True) as changes:
            limit.reschedule(None)
            # Also at the start, as nothing is replayed: the tools may have changed since they were listed.
            self._note()
            async for _ in changes:
                self._note()

    def _note(self) -> None:
        if self._pending is None:
            loop = asyncio.get_running_loop()
            self._pending = loop.call_later(self._pause.after_change(loop.time()), self._call_back)

    def _call_back(self) -> None:
        self._pending = None
        self._changed()
