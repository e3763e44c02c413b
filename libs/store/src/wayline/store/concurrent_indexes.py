"""Make and drop indexes while services read and write their tables."""

from __future__ import annotations

from functools import partial
from typing import Any

import asyncpg

from wayline.store.errors import MigrationBlocked, MigrationFailed
from wayline.store.index_statements import IndexStatement
from wayline.store.lock_retries import INDEX_TIMEOUT_S, holders, wait_briefly, with_retries

_VALID = """
SELECT i.indisvalid
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2
"""
PARTITIONED = b"p"
PARTITIONED_INDEX = b"I"
"""Of Postgres's `relkind`."""
_KIND = """
SELECT c.relkind FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2
"""
_WITHOUT_INDEX = """
SELECT child.oid, child.relname AS name
FROM pg_inherits AS part JOIN pg_class AS child ON child.oid = part.inhrelid
WHERE part.inhparent = $1::text::regclass AND NOT EXISTS (
    SELECT FROM pg_inherits AS attached JOIN pg_index AS i ON i.indexrelid = attached.inhrelid
    WHERE attached.inhparent = $2::text::regclass AND i.indrelid = child.oid
)
ORDER BY child.relname
"""


async def change_indexes(
    conn: Any, statements: list[IndexStatement], *, schema: str, file: str, timeout_s: float = INDEX_TIMEOUT_S
) -> None:
    """Run each statement by itself. Raises MigrationFailed and MigrationBlocked.

    What a run that was cut has done is kept, and an index that it left half-made is made again.
    """
    # Nobody waits behind such a lock, which conflicts with other changes of the table alone: it may take long.
    await wait_briefly(conn, timeout_ms=int(timeout_s * 1000))
    try:
        await conn.execute(f"SET search_path TO {_quote(schema)}, public; SET wayline.tenant = '*'")
        for statement in statements:
            await _change(conn, statement, schema=schema, file=file, timeout_s=timeout_s)
    finally:
        if not conn.is_closed():
            await conn.execute("RESET search_path; RESET wayline.tenant")
            await wait_briefly(conn)


async def _change(conn: Any, statement: IndexStatement, *, schema: str, file: str, timeout_s: float) -> None:
    try:
        if statement.table is None:
            await _drop(conn, statement, schema=schema)
        elif await conn.fetchval(_KIND, schema, statement.table) == PARTITIONED:
            await _make_on_partitions(conn, statement, schema=schema, timeout_s=timeout_s)
        else:
            await _make(conn, statement.text, statement.index, schema=schema)
    except asyncpg.LockNotAvailableError as error:
        raise MigrationBlocked(what=file, waited_s=timeout_s, holders=await holders(conn)) from error
    except asyncpg.PostgresError as error:
        raise MigrationFailed(file=file, line=statement.line, cause=str(error), whole=False) from error


async def _make(conn: Any, text: str, index: str, *, schema: str) -> None:
    valid = await conn.fetchval(_VALID, schema, index)
    if valid:
        return
    if valid is False:
        await conn.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {_quote(schema)}.{_quote(index)}")
    await conn.execute(text)


async def _make_on_partitions(conn: Any, statement: IndexStatement, *, schema: str, timeout_s: float) -> None:
    """Make an index of a partitioned table, which Postgres does not make concurrently: for each partition by itself.

    The table's own is made first, so that a partition that comes meanwhile has it at once. It is valid once every
    partition's is attached to it.
    """
    if await conn.fetchval(_VALID, schema, statement.index) is None:
        await _briefly(conn, statement.of_parent(schema), timeout_s=timeout_s)
    parent = f"{_quote(schema)}.{_quote(statement.index)}"
    for partition in await conn.fetch(_WITHOUT_INDEX, f"{_quote(schema)}.{_quote(statement.table or '')}", parent):
        name = f"{statement.index}_{partition['oid']}"
        await _make(conn, statement.of_partition(schema, partition["name"], name), name, schema=schema)
        attach = f"ALTER INDEX {parent} ATTACH PARTITION {_quote(schema)}.{_quote(name)}"
        await _briefly(conn, attach, timeout_s=timeout_s)


async def _drop(conn: Any, statement: IndexStatement, *, schema: str) -> None:
    if await conn.fetchval(_KIND, schema, statement.index) == PARTITIONED_INDEX:
        drop = f"DROP INDEX IF EXISTS {_quote(schema)}.{_quote(statement.index)}"
        await _briefly(conn, drop, timeout_s=INDEX_TIMEOUT_S)
    else:
        await conn.execute(statement.text)


async def _briefly(conn: Any, text: str, *, timeout_s: float) -> None:
    """Run a statement that others wait behind, again while its lock is not granted soon."""
    await wait_briefly(conn)
    try:
        await with_retries(conn, partial(conn.execute, text), what=text)
    finally:
        if not conn.is_closed():
            await wait_briefly(conn, timeout_ms=int(timeout_s * 1000))


def _quote(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
