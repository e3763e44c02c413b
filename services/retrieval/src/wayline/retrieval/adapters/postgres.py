"""Open the service's tables."""

from __future__ import annotations

import struct
from importlib.resources import files
from typing import Any

from wayline.store import Store

SCHEMA = "retrieval"


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
