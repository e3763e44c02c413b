"""A Postgres of its own for a bench of retrieval, with the schema and nothing in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
from pgvector.asyncpg import register_vector

from wayline.embedded import PostgresServer
from wayline.retrieval import app
from wayline.retrieval.postgres import open_store
from wayline.store import Store, migrate


@dataclass(frozen=True)
class Database:
    """A store, and the server that it is on."""

    server: PostgresServer
    store: Store

    @asynccontextmanager
    async def owner(self) -> AsyncIterator[Any]:
        """Yield a connection of who owns the tables: maintenance by anybody else does nothing."""
        conn = await asyncpg.connect(self.server.dsn(), server_settings={"search_path": "retrieval, public"})
        try:
            await register_vector(conn)
            await conn.execute("SET wayline.tenant = '*'; SET maintenance_work_mem = '1GB'")
            yield conn
        finally:
            await conn.close()


@asynccontextmanager
async def database(**settings: str) -> AsyncIterator[Database]:
    """Start a server with the schema, and yield it; nothing of it stays."""
    with tempfile.TemporaryDirectory(prefix="wayline-bench-") as directory:
        os.chmod(directory, 0o711)
        server = PostgresServer(Path(directory) / "postgres", settings={"fsync": "off", **settings})
        await server.start()
        try:
            dsn = server.dsn()
            await migrate(
                dsn, schema="retrieval", role="bench", password="bench", directory=app.migrations(), vector=True
            )
            store = await open_store(server.dsn(user="bench", password="bench"), pool_size=12, wait_s=5)
            try:
                yield Database(server, store)
            finally:
                await store.close()
        finally:
            await server.stop()


async def analyze(dsn: str) -> None:
    """Let Postgres count what is in the tables, as their owner: by anybody else that does nothing."""
    conn = await asyncpg.connect(dsn)
    try:
        await conn.execute("ANALYZE")
    finally:
        await conn.close()
