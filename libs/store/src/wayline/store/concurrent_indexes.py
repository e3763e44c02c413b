"""Make and drop indexes while services read and write their tables."""

from __future__ import annotations

from typing import Any

import asyncpg

from wayline.store.errors import MigrationBlocked, MigrationFailed
from wayline.store.index_statements import IndexStatement
from wayline.store.lock_retries import INDEX_TIMEOUT_S, holders, wait_briefly

_VALID = """
SELECT i.indisvalid
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2
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
        if statement.table is not None:
            valid = await conn.fetchval(_VALID, schema, statement.index)
            if valid:
                return
            if valid is False:
                await conn.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {_quote(schema)}.{_quote(statement.index)}")
        await conn.execute(statement.text)
    except asyncpg.LockNotAvailableError as error:
        raise MigrationBlocked(what=file, waited_s=timeout_s, holders=await holders(conn)) from error
    except asyncpg.PostgresError as error:
        raise MigrationFailed(file=file, line=statement.line, cause=str(error), whole=False) from error


def _quote(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
