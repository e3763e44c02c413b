"""Change tables under load: wait for a lock so briefly that nobody behind it notices, and try again for a while.

A statement that waits for an exclusive lock holds up everybody who comes after it, readers too: behind one long
transaction a plain `ALTER TABLE` stops a service. So the wait is short, and repeated.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import asyncpg

from wayline.store.errors import MigrationBlocked

T = TypeVar("T")

LOCK_TIMEOUT_MS: Final = 300
"""How long one lock is waited for. Who wants the same table meanwhile waits behind us for as long."""
LOCK_RETRY_MIN_S: Final = 0.2
LOCK_RETRY_MAX_S: Final = 5.0
"""The pause between two tries, which doubles: those who waited behind us go on in it."""
LOCK_PATIENCE_S: Final = 300.0
"""How long it is tried before the migration gives up, with nothing changed."""
INDEX_TIMEOUT_S: Final = 1800.0
"""How long an index that is made concurrently waits for one transaction of before; nobody waits behind it."""
OTHER_MIGRATION_WAIT_S: Final = 3600.0
OTHER_MIGRATION_POLL_S: Final = 0.1
HOLDERS_SHOWN: Final = 3

BLOCKED = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
_HOLDERS = """
SELECT format(
    'process %s of %s%s, in a transaction since %s s (%s)', pid, usename, nullif(' ' || application_name, ' '),
    round(extract(epoch FROM clock_timestamp() - xact_start)), state)
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
ORDER BY xact_start
LIMIT $1
"""


async def take_turn(conn: Any, key: int, *, patience_s: float = OTHER_MIGRATION_WAIT_S) -> None:
    """Become the only migration of this database, for as long as the connection lives. Raises MigrationBlocked.

    Asked again and again: a session that waits for the lock is a transaction of before, for which an index that the
    other migration makes would wait in turn.
    """
    deadline = time.monotonic() + patience_s
    while not await conn.fetchval("SELECT pg_try_advisory_lock($1)", key):
        if time.monotonic() >= deadline:
            raise MigrationBlocked(what="the database", waited_s=patience_s, holders=["another `wayline migrate`"])
        await asyncio.sleep(OTHER_MIGRATION_POLL_S)


async def wait_briefly(conn: Any, *, timeout_ms: int = LOCK_TIMEOUT_MS) -> None:
    """Have each statement of this session give up a lock that is not granted soon, and none for taking long."""
    await conn.execute(f"SET lock_timeout = '{timeout_ms}ms'; SET statement_timeout = 0")


async def with_retries(
    conn: Any, change: Callable[[], Awaitable[T]], *, what: str, patience_s: float = LOCK_PATIENCE_S
) -> T:
    """Make a change that is one transaction, again while its locks are not granted. Raises MigrationBlocked."""
    begun, pause = time.monotonic(), LOCK_RETRY_MIN_S
    while True:
        try:
            return await change()
        except BLOCKED as error:
            if time.monotonic() + pause >= begun + patience_s:
                raise MigrationBlocked(what=what, waited_s=patience_s, holders=await holders(conn)) from error
        await asyncio.sleep(pause)
        pause = min(2 * pause, LOCK_RETRY_MAX_S)


async def holders(conn: Any) -> list[str]:
    """Return who has been in a transaction for longest, in words: the lock that is missing is one of theirs."""
    return [row[0] for row in await conn.fetch(_HOLDERS, HOLDERS_SHOWN)]
