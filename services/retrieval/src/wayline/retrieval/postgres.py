"""Open the service's tables."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import structlog

from wayline.store import Store

log = structlog.get_logger()

SCHEMA = "retrieval"
NO_WORD_INDEX = (
    "keyword searches cannot use the index of words and scan all passages of a tenant: run `wayline migrate` as a "
    "superuser once, also after the database was restored or upgraded"
)


async def open_store(dsn: str, *, pool_size: int, wait_s: float) -> Store:
    """Open the service's own schema, with vectors going in as arrays and coming out as `pgvector.Vector`."""
    store = await Store.connect(
        dsn,
        schema=SCHEMA,
        queries=files("wayline.retrieval").joinpath("queries.sql"),
        max_size=pool_size,
        wait_s=wait_s,
        init=_register_vectors,
        # Statements here take milliseconds, whatever the planner guesses: compiling one takes longer than it runs.
        session={"jit": "off"},
    )
    async with store.system() as conn:
        if not await conn.fetchval(store.sql.word_index_is_used):
            log.warning(NO_WORD_INDEX)
    return store


async def _register_vectors(conn: Any) -> None:
    # Here and not above: importing the service, which `wayline up` does for every service, does not pay for it.
    from pgvector.asyncpg import register_vector

    await register_vector(conn)
