"""The connections of single users to one server: opened by a call, closed when they are idle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

from wayline.store import PostgresUnavailable
from wayline.tool_registry.calls.tool_servers import needs_login, needs_user
from wayline.tool_registry.errors import NeedsLogin, NotBegun
from wayline.tool_registry.servers.mcp_server import McpServer
from wayline.tool_registry.settings import Settings

RETIRE_S = 60.0
"""How long calls under way may go on with a login that was replaced or forgotten."""


@dataclass
class UserConnection:
    """A connection with the login of one user."""

    server: McpServer
    logged_in_at: datetime
    calls: int = 0
    closing: asyncio.TimerHandle | None = None


class UserConnections:
    """One connection a user, at most so many at once."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        *,
        logged_in_at: Callable[[str], Awaitable[datetime | None]],
        connect: Callable[[str], McpServer],
    ) -> None:
        """Take how to connect a user, and how to look up when a user logged in; None: the user is not logged in."""
        self._name = name
        self._settings = settings
        self._logged_in_at = logged_in_at
        self._connect = connect
        self._open: dict[str, UserConnection] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._retired = False

    def __len__(self) -> int:
        return len(self._open)

    @asynccontextmanager
    async def of(self, user_id: str | None) -> AsyncIterator[McpServer]:
        """Yield the connection of a user. Raises NeedsLogin or NotBegun."""
        if not user_id or "\0" in user_id:
            raise NeedsLogin(needs_user(self._name))
        try:
            # Before each call: a login that was forgotten or replaced, at whichever replica, is used no more.
            logged_in_at = await self._logged_in_at(user_id)
        except PostgresUnavailable as error:
            raise NotBegun(f"it cannot be found out who is logged in to {self._name!r}: {error.why}") from None
        if logged_in_at is None:
            self._leave(user_id)
            raise NeedsLogin(needs_login(self._name, user_id))
        one = self._take(user_id, logged_in_at)
        one.calls += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.connect_timeout_s):
                    await one.server.tried.wait()
            yield one.server
        finally:
            one.calls -= 1
            if not one.calls and self._open.get(user_id) is one:
                idle_s = self._settings.user_idle_s
                one.closing = asyncio.get_running_loop().call_later(idle_s, self._leave, user_id)

    def hide(self, text: str) -> str:
        """Return a text without any user's tokens."""
        for one in self._open.values():
            text = one.server.hide(text)
        return text

    def learn_again(self) -> None:
        """Compare every user's tools again with what was approved."""
        for one in self._open.values():
            one.server.learn_again()

    async def retire(self, grace_s: float) -> None:
        """Leave every connection once its calls have ended, or the grace is over; no call begins any more."""
        self._retired = True
        for user_id in list(self._open):
            self._leave(user_id, grace_s=grace_s)
        await asyncio.gather(*self._leaving, return_exceptions=True)

    async def stop(self) -> None:
        """Leave every connection now."""
        self._retired = True
        for task in self._leaving:
            task.cancel()
        left = [one.server.stop() for one in self._open.values()]
        self._open.clear()
        await asyncio.gather(*left, *self._leaving, return_exceptions=True)

    def _take(self, user_id: str, logged_in_at: datetime) -> UserConnection:
        """Return the connection that a user's login has; open one where it has none. Raises NotBegun."""
        if self._retired:
            raise NotBegun(f"the server {self._name!r} was changed or removed meanwhile: try it again")
        one = self._open.get(user_id)
        if one is not None and one.logged_in_at != logged_in_at:
            self._leave(user_id)
            one = None
        if one is None:
            self._make_room()
            one = self._open[user_id] = UserConnection(self._connect(user_id), logged_in_at)
            one.server.start()
        if one.closing is not None:
            one.closing.cancel()
            one.closing = None
        return one

    def _make_room(self) -> None:
        """Leave the connection that has been idle for longest, where there are as many as there may be."""
        most = self._settings.user_connections_max
        if len(self._open) < most:
            return
        idle = [user_id for user_id, one in self._open.items() if not one.calls]
        if not idle:
            raise NotBegun(f"{most} users call {self._name!r} at once, as many as may: try it later")
        self._leave(min(idle, key=self._closes_at))

    def _closes_at(self, user_id: str) -> float:
        closing = self._open[user_id].closing
        return 0.0 if closing is None else closing.when()

    def _leave(self, user_id: str, *, grace_s: float = RETIRE_S) -> None:
        one = self._open.pop(user_id, None)
        if one is None:
            return
        if one.closing is not None:
            one.closing.cancel()
        task = asyncio.create_task(one.server.retire(grace_s), name=f"leaving mcp server {self._name}")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
