"""The connection with one MCP server: calls share it, or open a session of their own beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from wayline.contracts.server_config import ServerSettings
from wayline.tool_registry.calls.tool_servers import NEEDS_LOGIN
from wayline.tool_registry.connection.failures import reason
from wayline.tool_registry.connection.mcp_sessions import another
from wayline.tool_registry.connection.offered_tools import first_page
from wayline.tool_registry.connection.questions import Questions
from wayline.tool_registry.connection.server_transport import Confinement, MakeAuth, Transport
from wayline.tool_registry.errors import NeedsLogin, NotBegun
from wayline.tool_registry.servers.server_task import ServerTask
from wayline.tool_registry.settings import Settings

if TYPE_CHECKING:
    from mcp import Client, ClientSession

LOOK_AGAIN_S = 0.02
"""How often it is looked whether a connection was replaced."""


class ServerConnection(ServerTask):
    """Knows whether a server is connected, and proves that it answers before an effect is sent."""

    def __init__(
        self, server: ServerSettings, settings: Settings, *, confined: Confinement | None, authorize: MakeAuth | None
    ) -> None:
        super().__init__(server.name)
        self._server = server
        self._settings = settings
        self._lost = False
        self._woken = asyncio.Event()
        """Set where the connection is of no use any more, or the tools are to be asked for at once."""
        self._client: Client | None = None
        self._connected_at: float | None = None
        # One more than calls: for the stream of changes.
        connections_max = settings.calls_max + 1
        self._transport = Transport(
            server,
            connections_max=connections_max,
            confined=confined,
            result_bytes=settings.result_max_bytes,
            authorize=authorize,
            ca_file=settings.ca_path,
            on_end=self._lose,
        )
        self._problem = "it is being connected"
        self._questions = Questions()
        self._silent = False
        """Whether the last call got no answer."""

    @asynccontextmanager
    async def _session(self, *, effect: bool, timeout_s: float) -> AsyncIterator[ClientSession]:
        if not await self.ready(self._settings.available_within_s) or (client := self._client) is None:
            raise self._away()
        if not effect:
            yield client.session
        elif self._has_sessions_of_their_own(effect):
            # One broken connection ends every call on it: an effect's outcome must not hang on a neighbour's.
            async with another(client, self._transport.target(), self._questions) as session:
                yield session
        else:
            yield (await self._proved(client, within_s=timeout_s)).session

    def _away(self) -> NotBegun:
        kind = NeedsLogin if self._problem.startswith(NEEDS_LOGIN) else NotBegun
        return kind(f"the server {self.name!r} does not answer: {self._problem}")

    def _has_sessions_of_their_own(self, effect: bool) -> bool:
        """Return whether each call with an effect opens a session: free over HTTP since protocol 2026-07-28."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        client = self._client
        over_http = self._transport.over_http
        return effect and over_http and client is not None and client.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def _proved(self, client: Client, *, within_s: float) -> Client:
        """Return a connection on which the server has just answered, a new one where it has forgotten this one."""
        try:
            await self._prove(client, within_s=within_s)
            return client
        except NotBegun:
            # A server that was restarted knows no session from before: nothing was done, and another one is opened.
            if (fresh := await self._another_than(client)) is None:
                raise
        await self._prove(fresh, within_s=within_s)
        return fresh

    async def _another_than(self, client: Client) -> Client | None:
        """Return the connection that follows one; None: there is none in time, or the server is only silent."""
        until = time.monotonic() + self._settings.available_within_s
        while self._lost or self._client is client:
            if not self._lost and self._usable.is_set():
                return None
            if time.monotonic() >= until:
                return None
            await asyncio.sleep(LOOK_AGAIN_S)
        left_s = max(0.0, until - time.monotonic())
        return self._client if await self.ready(left_s) else None

    async def _prove(self, client: Client, *, within_s: float) -> None:
        """Ask something harmless first: a pipe that broke unnoticed would make an effect's outcome unknown."""
        try:
            async with asyncio.timeout(within_s):
                await first_page(client)
        except TimeoutError:
            self._silent = True
            raise NotBegun(f"the server {self.name!r} has not answered anything within {within_s:g} s") from None
        except Exception as error:
            self._lose()
            raise NotBegun(f"the server {self.name!r} does not answer: {reason(error)}") from None

    def _leave(self) -> float:
        """Offer the server to no call any more, and return how long it was connected."""
        connected_at, self._connected_at = self._connected_at, None
        self._client = None
        self._usable.clear()
        self.tried.set()
        self.listed.set()
        return 0.0 if connected_at is None else time.monotonic() - connected_at

    async def _is_lost(self, *, within_s: float) -> bool:
        # Not `wait_for`, which passes over a cancellation that comes as the event is set: a connection that is left
        # while its tools are to be asked for would stay.
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._woken.wait()
        return self._lost

    def _lose(self) -> None:
        """Have the connection replaced, and offer it to no call meanwhile: to leave it may take long."""
        self._lost = True
        if self._usable.is_set():
            self._problem = "its connection broke"
            self._usable.clear()
        self._woken.set()
