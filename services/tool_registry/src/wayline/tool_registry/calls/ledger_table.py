"""The ledger in Postgres: every change of a row is one compare-and-set.

Every method raises LedgerUnavailable where the ledger gave no answer, for any reason.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import structlog

from wayline.contracts.tools import CallTool, Effect, ToolReply
from wayline.store import PostgresUnavailable, Record, Store
from wayline.tool_registry.calls.ledger import LEASE_CLOCK, Lease, Row, State
from wayline.tool_registry.errors import LedgerUnavailable

log = structlog.get_logger()


class PostgresLedger:
    """One row a key."""

    def __init__(self, store: Store, *, lease_s: float) -> None:
        self._store = store
        self._sql = store.sql
        self.lease_s = lease_s

    async def begin(self, ask: CallTool, *, effect: Effect, owner: str) -> Lease | None:
        """Insert the row of a new key; None: the key was begun before, or its deadline has passed."""
        asked_at = time.clock_gettime(LEASE_CLOCK)
        row = (ask.tenant, ask.key, ask.job_id, ask.tool, effect, owner, self.lease_s, ask.deadline)
        attempt = await self._value(ask.tenant, self._sql.begin, *row, ask.content_hash())
        return None if attempt is None else Lease(ask.tenant, ask.key, attempt, owner, asked_at)

    async def find(self, tenant: str, key: str, *, deadline: datetime) -> Row | None:
        """Return a key's row as it is now."""
        row = await self._row(tenant, self._sql.find, tenant, key, deadline)
        if row is None:
            return None
        with _answered():
            result = None if row["result"] is None else ToolReply.model_validate_json(row["result"])
        return Row(
            state=State(row["state"]),
            effect=Effect(row["effect"]),
            attempt=row["attempt"],
            owner=row["owner"],
            live=row["live"],
            late=row["late"],
            result=result,
            content_hash=row["content_hash"],
        )

    async def stored(self, tenant: str, key: str) -> ToolReply:
        """Return the outcome of a finished key."""
        text = await self._value(tenant, self._sql.stored, tenant, key)
        with _answered():
            return ToolReply.model_validate_json(text)

    async def take(self, ask: CallTool, *, seen: int, owner: str) -> Lease | None:
        """Take over a key whose lease has expired; None: another process was faster, or the deadline has passed."""
        asked_at = time.clock_gettime(LEASE_CLOCK)
        row = (ask.tenant, ask.key, seen, owner, self.lease_s, ask.deadline)
        attempt = await self._value(ask.tenant, self._sql.take, *row)
        return None if attempt is None else Lease(ask.tenant, ask.key, attempt, owner, asked_at)

    def regain(self, ask: CallTool, row: Row) -> Lease:
        """Return our own lease as found in its row, to be renewed before it is used."""
        return Lease(ask.tenant, ask.key, row.attempt, row.owner, asked_at=float("-inf"))

    async def renew(self, lease: Lease) -> bool:
        """Renew our lease; return False when it is not ours any more."""
        asked_at = time.clock_gettime(LEASE_CLOCK)
        held = await self._change(self._sql.renew, lease, self.lease_s)
        if held:
            lease.asked_at = asked_at
        return held

    async def finish(self, lease: Lease, reply: ToolReply) -> bool:
        """Write the outcome down; False: another outcome is there already, or another holder."""
        with _answered():
            return await self._change(self._sql.finish, lease, reply.model_dump_json())

    async def disown(self, lease: Lease) -> bool:
        """Record that the outcome of our own call is unknown."""
        return await self._change(self._sql.disown, lease)

    async def give_up(self, tenant: str, key: str, *, seen: int) -> bool:
        """Record that the outcome of a call whose holder is gone is unknown."""
        return await self._value(tenant, self._sql.give_up, tenant, key, seen) is not None

    async def resolve(self, tenant: str, key: str, *, job_id: str, reply: ToolReply) -> bool:
        """Write a person's decision down; False: a result was there already."""
        row = (tenant, key, job_id, reply.model_dump_json())
        return await self._value(tenant, self._sql.resolve, *row) is not None

    async def void(self, ask: CallTool, reply: ToolReply) -> bool:
        """Insert the row of a new key as finished; return False when there is a row."""
        row = (ask.tenant, ask.key, ask.job_id, ask.tool, reply.model_dump_json())
        return await self._value(ask.tenant, self._sql.void, *row) is not None

    async def keep_read(self, ask: CallTool, reply: ToolReply) -> None:
        """Insert the row of a read that has ended and charged; one of another read under the key is replaced."""
        row = (ask.tenant, ask.key, ask.job_id, ask.tool, reply.model_dump_json(), ask.content_hash())
        await self._value(ask.tenant, self._sql.keep_read, *row)

    async def lose(self, tenant: str, key: str, reply: ToolReply) -> bool:
        """End a call whose holder is gone; False: it has a holder or an outcome."""
        return await self._value(tenant, self._sql.lose, tenant, key, reply.model_dump_json()) is not None

    async def forget(self, *, after_days: int) -> None:
        """Delete what no job can ask for any more."""
        with _answered():
            async with self._store.system() as conn:
                await conn.execute(self._sql.forget, after_days)

    async def _change(self, sql: str, lease: Lease, *more: object) -> bool:
        row = (lease.tenant, lease.key, lease.attempt, lease.owner, *more)
        return await self._value(lease.tenant, sql, *row) is not None

    async def _value(self, tenant: str, sql: str, *row: object) -> Any:
        with _answered():
            return await self._store.fetchval(tenant, sql, *row)

    async def _row(self, tenant: str, sql: str, *row: object) -> Record | None:
        with _answered():
            return await self._store.fetchrow(tenant, sql, *row)


@contextmanager
def _answered() -> Iterator[None]:
    """Turn every error into LedgerUnavailable: none of them says anything about the tool."""
    try:
        yield
    except LedgerUnavailable:
        raise
    except PostgresUnavailable as error:
        raise LedgerUnavailable(error) from error
    except Exception as error:  # of any kind: the key may have had its effect
        log.error("the ledger failed", error=repr(error), exc_info=error)
        raise LedgerUnavailable(error) from error
