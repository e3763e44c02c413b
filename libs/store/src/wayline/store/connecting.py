"""Reach a Postgres, and say what to do when it cannot be reached."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from wayline.store.errors import PoolerUnannounced, PostgresRefused, PostgresTooOld, PostgresUnavailable
from wayline.store.pooler import read_pool_mode
from wayline.store.several_hosts import NONE_WRITES, NoPrimary, connect_once, is_unreachable
from wayline.store.transient_errors import sqlstate

T = TypeVar("T")

POSTGRES_MAJOR_MIN = 16
RETRY_POLL_S = 0.1
STATEMENT_CANCELLED = "57014"
"""Of Postgres, for a statement that took longer than its time-out."""

_POOLER = re.compile("unsupported startup parameter")
_REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


async def reach(dsn: str, connect: Callable[[], Awaitable[T]], *, wait_s: float = 0.0) -> T:
    """Connect, trying again for `wait_s` while nothing answers."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return await connect()
        except _REFUSED as error:
            raise PostgresRefused(where=address(dsn), cause=str(error)) from error
        except (OSError, asyncpg.PostgresError, NoPrimary) as error:
            if _POOLER.search(str(error)):
                raise PoolerUnannounced(where=address(dsn)) from error
            if not is_unreachable(error):
                raise
            if time.monotonic() >= deadline:
                raise unavailable(error, where=address(dsn), waited_s=wait_s) from error
        await asyncio.sleep(RETRY_POLL_S)


async def connect_or_explain(dsn: str, **options: Any) -> Any:
    """Open one connection for a command; an error says where nothing answers or who was refused, and what to do."""
    return await reach(dsn, lambda: connect_once(dsn, **options))


async def connect_admin(dsn: str) -> asyncpg.Connection:
    """Open one connection for migrations, to a server that is new enough."""
    if read_pool_mode(dsn)[1]:
        raise PoolerUnannounced(where=address(dsn), admin=True)
    conn = await connect_or_explain(dsn)
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


def unavailable(error: BaseException, *, where: str, waited_s: float = 0.0, ran: bool = False) -> PostgresUnavailable:
    """Make our own error of one that passes by itself; `ran`: it came to a statement that ran."""
    cause = NONE_WRITES if isinstance(error, NoPrimary) else str(error) or type(error).__name__
    state = sqlstate(error)
    too_slow = ran and (isinstance(error, TimeoutError) or state == STATEMENT_CANCELLED)
    return PostgresUnavailable(where=where, cause=cause, waited_s=waited_s, sqlstate=state, statement_too_slow=too_slow)


def address(dsn: str) -> str:
    """Return an address without its password."""
    parts = urlsplit(dsn)
    hosts = parts.netloc.rpartition("@")[2].split(",")
    return f"{','.join(map(_with_port, hosts))}{parts.path}"


def _with_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    # A colon stands in an IPv6 address too, whose end is a bracket.
    if not colon or host.endswith("]"):
        name, port = host, ""
    return f"{name or 'the local socket'}:{port or 5432}"
