"""Reach a Postgres, and say what to do when it cannot be reached."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from wayline.store.errors import PostgresRefused, PostgresTooOld, PostgresUnavailable

T = TypeVar("T")

POSTGRES_MAJOR_MIN = 16
CONNECT_TIMEOUT_S = 10
RETRY_POLL_S = 0.1

# What a running statement meets when the server stops or the connection breaks.
GOING = (asyncpg.PostgresConnectionError, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError)
# What a new connection meets; a server that is still starting is as good as away.
AWAY = (OSError, TimeoutError, asyncpg.CannotConnectNowError, asyncpg.TooManyConnectionsError, *GOING)
_REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


async def reach(dsn: str, connect: Callable[[], Awaitable[T]], *, wait_s: float = 0.0) -> T:
    """Connect, trying again for `wait_s` while nothing answers."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return await connect()
        except _REFUSED as error:
            raise PostgresRefused(where=address(dsn), cause=str(error)) from error
        except AWAY as error:
            if time.monotonic() >= deadline:
                cause = str(error) or type(error).__name__
                raise PostgresUnavailable(where=address(dsn), cause=cause, waited_s=wait_s) from error
        await asyncio.sleep(RETRY_POLL_S)


async def connect_admin(dsn: str) -> asyncpg.Connection:
    """One connection for migrations, to a server that is new enough."""
    conn = await reach(dsn, lambda: asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_S))
    try:
        require_version(conn)
    except BaseException:
        await conn.close()
        raise
    return conn


def require_version(conn: Any) -> None:
    """Refuse a server older than we support."""
    version = conn.get_server_version()
    if version.major < POSTGRES_MAJOR_MIN:
        raise PostgresTooOld(found=f"{version.major}.{version.minor}", wanted=POSTGRES_MAJOR_MIN)


def address(dsn: str) -> str:
    """Where an address points, without the password in it."""
    parts = urlsplit(dsn)
    return f"{parts.hostname or 'the local socket'}:{parts.port or 5432}{parts.path}"
