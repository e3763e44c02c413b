"""The embedded servers of an installation: on the ports they had, started again when they die or do not store."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import structlog

from wayline.embedded import NatsServer, PostgresServer, StartFailed, free_port, is_free
from wayline.standalone.errors import ServerLost
from wayline.standalone.setup.installation import DATABASE, Installation
from wayline.standalone.settings import Settings

if TYPE_CHECKING:
    from wayline.standalone.setup.credentials import Credentials

log = structlog.get_logger()

WATCH_EVERY_S = 0.2
DEATHS_MAX = 5
DEATHS_WITHIN_S = 60.0
STORES_EVERY_S = 5.0
"""The pause between two looks whether the bus stores what is published."""
STORES_FAILED_MAX = 3
"""Looks in a row that fail before a bus with room on its disk is started again."""
FULL_PAUSE_S = 2.0
"""The pause after a server could not be started for want of room."""
ROOM_MIN_BYTES = 32 * 1024 * 1024
"""Free room below which a disk counts as full: Postgres alone wants 16 MiB at once."""

Server = NatsServer | PostgresServer


def postgres_server(installation: Installation, settings: Settings) -> PostgresServer:
    """The embedded Postgres, on the port it had last time unless that is taken by now."""
    if settings.postgres_port is not None:
        return PostgresServer(installation.postgres, port=settings.postgres_port)
    remembered = installation.postgres / "port"
    port = int(remembered.read_text()) if remembered.exists() else None
    if port is None or not is_free(port):
        port = free_port()
        installation.postgres.mkdir(exist_ok=True)
        remembered.write_text(f"{port}\n")
    return PostgresServer(installation.postgres, port=port)


def nats_server(installation: Installation, settings: Settings, credentials: Credentials) -> NatsServer:
    """The embedded bus, which knows every identity of the installation."""
    from wayline.standalone.bus.accounts import write_accounts
    from wayline.standalone.bus.clients import held
    from wayline.standalone.servers.nats_config import render

    with held(installation.clients):
        accounts = write_accounts(settings, installation, credentials)
    config = render(f"include ./{accounts.name}", monitor_port=settings.nats_monitor_port)
    return NatsServer(installation.nats, config=config, port=settings.nats_port)


def database_dsn(server: PostgresServer) -> str:
    """The address of our database for its superuser."""
    return server.dsn(database=DATABASE)


Check = Callable[[], Awaitable[None]]
"""Raises where the bus does not store what is published."""


class Watch:
    """Keeps the embedded servers running: on the same ports and data, so that clients reconnect by themselves."""

    def __init__(self, servers: Sequence[Server], *, said: Callable[[str], None], stores: Check | None = None) -> None:
        self._servers = servers
        self._said = said
        self._stores = stores
        self._deaths: dict[str, deque[float]] = {server.name: deque(maxlen=DEATHS_MAX) for server in servers}
        self._full: set[str] = set()
        self._starting = asyncio.Lock()

    async def run(self) -> None:
        """Watch until cancelled. Raises ServerLost when a server does not stay up."""
        watching = [asyncio.create_task(self._keep_alive())]
        for server in self._servers:
            if isinstance(server, NatsServer) and self._stores is not None:
                watching.append(asyncio.create_task(self._keep_storing(server, self._stores)))
        try:
            ended, _ = await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            from wayline.chassis.tasks import stopped

            await stopped(*watching)

    async def _keep_alive(self) -> None:
        """Start a server that died again."""
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
            self._said(f"{server.name} has died; starting it again")
            log.error("a server died, starting it again", server=server.name)
        try:
            await server.start()
        except (StartFailed, OSError) as error:
            if has_room(server):
                raise
            # It needs room to come back; nothing else is wrong with it.
            self._tell_full(server, error)
            await asyncio.sleep(FULL_PAUSE_S)
            return
        self._full.discard(server.name)
        self._said(f"{server.name} is back at port {server.port}; nothing that was acknowledged is lost")

    async def _keep_storing(self, server: NatsServer, stores: Check) -> None:
        """Restart a JetStream that stores nothing though there is room: after a full disk it does not by itself."""
        failed = 0
        while True:
            await asyncio.sleep(STORES_EVERY_S)
            try:
                await stores()
            except Exception as error:
                # A server that is not running is the other watch's business.
                failed = failed + 1 if server.running else 0
                log.warning("the bus stores nothing", why=str(error) or type(error).__name__, times=failed)
                if failed and not has_room(server):
                    self._tell_full(server, error)
                elif failed >= STORES_FAILED_MAX:
                    await self._restart(server)
                    failed = 0
            else:
                failed = 0
                self._full.discard(server.name)

    async def _restart(self, server: NatsServer) -> None:
        self._said(f"{server.name} stores nothing though its disk has room; starting it again")
        log.error("the bus stores nothing, starting it again")
        async with self._starting:
            await server.restart()
        self._full.discard(server.name)
        self._said(f"{server.name} is back at port {server.port}; nothing that was acknowledged is lost")

    def _tell_full(self, server: Server, error: Exception) -> None:
        if server.name not in self._full:
            self._full.add(server.name)
            self._said(f"the disk of {server.data_dir} is full: {server.name} waits for room, then goes on by itself")
            log.error("no room on disk", server=server.name, error=str(error)[:500])


def has_room(server: Server) -> bool:
    """Return whether a server's disk has room enough to start it."""
    return shutil.disk_usage(server.data_dir).free >= ROOM_MIN_BYTES
