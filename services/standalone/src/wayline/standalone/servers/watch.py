"""Restart an embedded server that died or stores nothing, and wait while its disk is full."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING

import structlog

from wayline.contracts.errors import Unavailable
from wayline.embedded import NatsServer, StartFailed
from wayline.standalone.errors import ServerLost
from wayline.standalone.servers.embedded import Server

if TYPE_CHECKING:
    from wayline.chassis import Bus

log = structlog.get_logger()

WATCH_EVERY_S = 0.2
DEATHS_MAX = 5
DEATHS_WITHIN_S = 60.0
STORES_EVERY_S = 5.0
"""The pause between two checks that the bus stores what is published."""
STORES_FAILED_MAX = 3
"""Failed checks in a row before a bus with room on its disk is started again."""
FULL_PAUSE_S = 2.0
"""The pause after a server could not be started because its disk is full."""
ROOM_MIN_BYTES = 32 * 1024 * 1024
"""Free bytes below which a disk counts as full: Postgres alone writes 16 MiB at once."""

Check = Callable[[], Awaitable[None]]
"""Raises when the bus does not store what is published."""


async def keep_running(
    servers: Sequence[Server],
    *,
    connect: Callable[[], AbstractAsyncContextManager[Bus]],
    stuck: Callable[[], str | None],
    print_line: Callable[[str], None],
) -> None:
    """Keep the servers running, and the bus storing, until cancelled. Raises ServerLost when one does not stay up.

    `connect` connects to the bus as its administrator; `stuck` returns the first word of subjects on which a service
    gets no ack.
    """
    async with AsyncExitStack() as connections:
        bus: Bus | None = None

        async def check() -> None:
            nonlocal bus
            # Connected only here, while the servers are watched: a bus that has just died must be restarted first.
            if bus is None:
                bus = await connections.enter_async_context(connect())
            await bus.check()
            if word := stuck():
                raise Unavailable("the bus", detail=f"{word}.> gets no ack")

        await ServerWatch(servers, print_line=print_line, check=check).run()


class ServerWatch:
    """Keeps the embedded servers running: on the same ports and data, so that clients reconnect by themselves."""

    def __init__(self, servers: Sequence[Server], *, print_line: Callable[[str], None], check: Check) -> None:
        self._servers = servers
        self._print = print_line
        self._check = check
        self._deaths: dict[str, deque[float]] = {server.name: deque(maxlen=DEATHS_MAX) for server in servers}
        self._full: set[str] = set()
        self._starting = asyncio.Lock()

    async def run(self) -> None:
        """ServerWatch the servers until cancelled. Raises ServerLost when one does not stay up."""
        watching = [asyncio.create_task(self._keep_alive())]
        for server in self._servers:
            if isinstance(server, NatsServer):
                watching.append(asyncio.create_task(self._keep_storing(server)))
        try:
            ended, _ = await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            from wayline.chassis.concurrency.awaited_tasks import stopped

            await stopped(*watching)

    async def _keep_alive(self) -> None:
        """Start every server that died again."""
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            for server in self._servers:
                async with self._starting:
                    if not server.running:
                        await self._start_again(server)

    async def _start_again(self, server: Server) -> None:
        if server.name not in self._full:
            times = self._deaths[server.name]
            times.append(time.monotonic())
            if len(times) == DEATHS_MAX and times[-1] - times[0] < DEATHS_WITHIN_S:
                raise ServerLost(server=server.name, times=DEATHS_MAX, within_s=DEATHS_WITHIN_S, log=server.log)
            self._print(f"{server.name} has died; starting it again")
            log.error("a server died, starting it again", server=server.name)
        try:
            await server.start()
        except (StartFailed, OSError) as error:
            if has_room(server):
                raise
            # Only room on the disk is missing.
            self._report_full(server, error)
            await asyncio.sleep(FULL_PAUSE_S)
            return
        self._full.discard(server.name)
        self._print(f"{server.name} is back at port {server.port}; nothing that was acknowledged is lost")

    async def _keep_storing(self, server: NatsServer) -> None:
        """Restart a JetStream that stores nothing though its disk has room: after a full disk it needs a restart."""
        failed = 0
        while True:
            await asyncio.sleep(STORES_EVERY_S)
            try:
                await self._check()
            except Exception as error:
                # `_keep_alive` starts a server that is not running.
                failed = failed + 1 if server.running else 0
                log.warning("the bus stores nothing", why=str(error) or type(error).__name__, times=failed)
                if failed and not has_room(server):
                    self._report_full(server, error)
                elif failed >= STORES_FAILED_MAX:
                    await self._restart(server)
                    failed = 0
            else:
                failed = 0
                self._full.discard(server.name)

    async def _restart(self, server: NatsServer) -> None:
        self._print(f"{server.name} stores nothing though its disk has room; starting it again")
        log.error("the bus stores nothing, starting it again")
        async with self._starting:
            await server.restart()
        self._full.discard(server.name)
        self._print(f"{server.name} is back at port {server.port}; nothing that was acknowledged is lost")

    def _report_full(self, server: Server, error: Exception) -> None:
        if server.name not in self._full:
            self._full.add(server.name)
            self._print(f"the disk of {server.data_dir} is full: {server.name} waits for room, then goes on by itself")
            log.error("no room on disk", server=server.name, error=str(error)[:500])


def has_room(server: Server) -> bool:
    """Return whether a server's disk has enough room to start it."""
    return shutil.disk_usage(server.data_dir).free >= ROOM_MIN_BYTES
