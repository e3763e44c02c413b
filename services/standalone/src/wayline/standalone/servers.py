"""The embedded servers of an installation: started on the ports they had, started again when they die."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from wayline.embedded import NatsServer, PostgresServer, free_port, is_free
from wayline.standalone.errors import ServerLost
from wayline.standalone.installation import DATABASE, Installation
from wayline.standalone.settings import Settings

if TYPE_CHECKING:
    from wayline.standalone.credentials import Credentials

log = structlog.get_logger()

WATCH_EVERY_S = 0.2
DEATHS_MAX = 5
DEATHS_WITHIN_S = 60.0

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
    from wayline.standalone.bus_accounts import write_accounts
    from wayline.standalone.bus_clients import held
    from wayline.standalone.nats_config import render

    with held(installation.clients):
        accounts = write_accounts(settings, installation, credentials)
    config = render(f"include ./{accounts.name}", monitor_port=settings.nats_monitor_port)
    return NatsServer(installation.nats, config=config, port=settings.nats_port)


def database_dsn(server: PostgresServer) -> str:
    """The address of our database for its superuser."""
    return server.dsn(database=DATABASE)


async def watch(servers: list[Server], *, said: Callable[[str], None]) -> None:
    """Start a server that died again, on the same port and data; clients reconnect by themselves.

    Raises ServerLost when one does not stay up.
    """
    deaths: dict[str, deque[float]] = {server.name: deque(maxlen=DEATHS_MAX) for server in servers}
    while True:
        await asyncio.sleep(WATCH_EVERY_S)
        for server in servers:
            if server.running:
                continue
            times = deaths[server.name]
            times.append(time.monotonic())
            if len(times) == DEATHS_MAX and times[-1] - times[0] < DEATHS_WITHIN_S:
                raise ServerLost(server=server.name, times=DEATHS_MAX, within_s=DEATHS_WITHIN_S, log=server.log)
            said(f"{server.name} has died; starting it again")
            log.error("a server died, starting it again", server=server.name)
            await server.start()
            said(f"{server.name} is back at port {server.port}; nothing that was acknowledged is lost")
