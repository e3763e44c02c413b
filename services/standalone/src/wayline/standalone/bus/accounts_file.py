"""The accounts of the installation's bus: a file that the server includes, and reloads after a change."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import nats
import orjson
from nats import errors as nats_errors
from nats.aio.client import Client as Connection

from wayline.chassis.access.accounts import render_accounts
from wayline.contracts.errors import Unavailable
from wayline.standalone.bus.stored_clients import read_clients
from wayline.standalone.settings import Settings
from wayline.standalone.setup.credentials import ADMIN, SYSTEM, Credentials
from wayline.standalone.setup.installation import Installation, read_environment

ACCOUNTS_FILE = "accounts.conf"
RELOADS = 2
"""A server sets up the imports of a new account only when it reloads its configuration once more."""
WITHIN_S = 5.0
SERVERS_WITHIN_S = 0.5
"""How long the servers of a cluster have to answer a ping."""
ONCE_MORE: Final[dict[str, Any]] = {"max_reconnect_attempts": 1, "reconnect_time_wait": 0.2}
"""Of each server; by itself the client tries each sixty times, two seconds apart."""
SERVERS_MAX = 100
FOR_THE_SERVER = 0o644
"""Public keys and permissions; a server in a container runs as another user."""


def accounts_file(settings: Settings, installation: Installation) -> Path:
    """Return the file of the accounts."""
    return settings.nats_accounts_file or installation.nats / ACCOUNTS_FILE


def accounts_text(settings: Settings, installation: Installation, credentials: Credentials) -> str:
    """Return the accounts of the services and of every client; a bus on the loopback takes the anonymous one too."""
    keys = credentials.public_keys()
    return render_accounts(
        keys,
        admin_key=keys[ADMIN],
        system_key=keys[SYSTEM],
        client=settings.nats_accounts_file is None,
        clients=[one.client for one in read_clients(installation.clients)],
        beside=credentials.keys_beside(),
    )


def write_accounts(settings: Settings, installation: Installation, credentials: Credentials) -> Path:
    """Write the accounts into the file that the bus includes."""
    text = accounts_text(settings, installation, credentials)
    path = accounts_file(settings, installation)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FOR_THE_SERVER), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    return path


async def reload(settings: Settings, installation: Installation, credentials: Credentials) -> int:
    """Make every server of the bus reload its configuration; return how many did, 0 where none runs.

    Raises Unavailable when a server refuses it.
    """
    if bus_url(settings, installation) is None:
        return 0
    try:
        async with as_system(settings, installation, credentials) as nc:
            servers = await servers_of(nc)
            for _ in range(RELOADS):
                for server in servers:
                    await _reload(nc, server)
            return len(servers)
    except NotReached as error:
        if settings.nats_url is None and installation.running() is None:
            return 0
        raise Unavailable("the bus", detail=f"accounts not reloaded: {error}") from None


def bus_url(settings: Settings, installation: Installation) -> str | None:
    """Return the address of the installation's bus; None: it has none yet."""
    return settings.nats_url or read_environment(installation, ADMIN).get("WAYLINE_NATS_URL")


class NotReached(Exception):
    """No server of the bus takes the connection that may see and reload it."""


@asynccontextmanager
async def as_system(
    settings: Settings, installation: Installation, credentials: Credentials
) -> AsyncIterator[Connection]:
    """Connect to the bus as the identity that may see connections and have servers reload. Raises NotReached."""
    url, seed = bus_url(settings, installation) or "", credentials.seeds[SYSTEM]
    try:
        nc = await nats.connect(
            url.split(","), nkeys_seed_str=seed, allow_reconnect=False, error_cb=_quiet, **ONCE_MORE
        )
    except (OSError, TimeoutError, nats_errors.Error) as error:
        raise NotReached(str(error) or type(error).__name__) from None
    try:
        yield nc
    finally:
        await nc.close()


async def _quiet(_: Exception) -> None:
    return None


async def servers_of(nc: Connection) -> list[str]:
    """Return the ids of the servers of the bus. Raises Unavailable where none answers."""
    inbox = nc.new_inbox()
    answers = await nc.subscribe(inbox, max_msgs=SERVERS_MAX)
    await nc.publish("$SYS.REQ.SERVER.PING", b"", reply=inbox)
    found: list[str] = []
    try:
        while len(found) < SERVERS_MAX:
            answer = await answers.next_msg(timeout=SERVERS_WITHIN_S if found else WITHIN_S)
            found.append(orjson.loads(answer.data)["server"]["id"])
    except nats_errors.TimeoutError:
        if not found:
            raise Unavailable("the bus", detail="no server answered a ping") from None
    return found


async def _reload(nc: Connection, server: str) -> None:
    try:
        answer = await nc.request(f"$SYS.REQ.SERVER.{server}.RELOAD", b"", timeout=WITHIN_S)
    except (TimeoutError, nats_errors.Error) as error:
        raise Unavailable("the bus", detail=f"a server did not reload its configuration: {error}") from None
    result = orjson.loads(answer.data)
    if "error" in result:
        raise Unavailable("the bus", detail=f"a server refuses its configuration: {result['error']}")
    # The answer comes before the change is in effect everywhere; a flush comes after it.
    await asyncio.wait_for(nc.flush(), WITHIN_S)
