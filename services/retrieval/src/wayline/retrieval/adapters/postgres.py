"""Open the service's tables, and say in our own errors when Postgres is away."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import asyncpg

from wayline.contracts.errors import Retry, Unavailable
from wayline.store import Store

SCHEMA = "retrieval"

_AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
)
_AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError)


async def open_store(dsn: str, *, pool_size: int, wait_s: float) -> Store:
    """The service's own schema, with vectors going in and out as arrays."""
    return await Store.connect(
        dsn,
        schema=SCHEMA,
        queries=files("wayline.retrieval").joinpath("queries.sql"),
        max_size=pool_size,
        wait_s=wait_s,
        init=_prepare,
    )


async def _prepare(conn: Any) -> None:
    await conn.set_type_codec("vector", schema="public", encoder=_packed, decoder=_unpacked, format="binary")


# pgvector's own package does the same, and imports numpy for it: a quarter of a second of every start.
def _packed(vector: Any) -> bytes:
    return struct.pack(f">HH{len(vector)}f", len(vector), 0, *vector)


def _unpacked(data: bytes) -> tuple[float, ...]:
    return struct.unpack(f">{(len(data) - 4) // 4}f", data[4:])


@contextmanager
def reachable() -> Iterator[None]:
    """Raise Retry for what passes by itself: a Postgres that is away, full, or preferred another transaction."""
    try:
        yield
    except _AGAIN as error:
        raise Retry(f"Postgres chose another transaction first: {error}", after_s=0.1) from error
    except _AWAY as error:
        # asyncpg says so of an argument it cannot encode: trying again would never end.
        if isinstance(error, ValueError):
            raise
        raise Unavailable("Postgres", detail=type(error).__name__) from error
