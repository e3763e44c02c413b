"""Who changed what, in Postgres: written down before the change is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wayline.gateway.keys import Caller
from wayline.gateway.shapes.audit import AuditQuery
from wayline.store import Record, Store

DETAIL_MAX = 200
Outcome = Literal["made", "refused", "failed"]


@dataclass
class Trail:
    """What is known of a change that is under way."""

    tenant: str
    id: int
    name: str
    before: str | None = None
    after: str | None = None
    detail: str = ""


class AuditLog:
    """The table `audit`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(
        self, caller: Caller, *, tenant: str, kind: str, name: str, operation: str, trace_id: str | None
    ) -> Trail:
        """Write down that a change is tried. Raises PostgresUnavailable: then it is not made."""
        who = (caller.name, caller.key_id or None, caller.is_operator, caller.user_id, trace_id)
        sql = self._store.sql.begin_audited
        number = await self._store.fetchval(tenant, sql, tenant, kind, name[:DETAIL_MAX], operation, *who)
        return Trail(tenant, number, name)

    async def move(self, trail: Trail, tenant: str) -> None:
        """Put what is tried into another tenant's log, which it is about. Raises PostgresUnavailable."""
        async with self._store.system() as conn:
            await conn.execute(self._store.sql.move_audited, trail.tenant, trail.id, tenant)
        trail.tenant = tenant

    async def end(self, trail: Trail, outcome: Outcome, *, code: str | None) -> None:
        """Write down what came of it, once."""
        told = (trail.name[:DETAIL_MAX], trail.before, trail.after, trail.detail[:DETAIL_MAX], outcome, code)
        await self._store.execute(trail.tenant, self._store.sql.end_audited, trail.tenant, trail.id, *told)

    async def page(self, tenant: str, query: AuditQuery, *, limit: int, before: int | None) -> list[Record]:
        """Return changes, the newest first."""
        asked = (query.kind, query.name, query.by, query.key_id, query.since, query.until)
        return await self._store.fetch(tenant, self._store.sql.list_audited, tenant, before, *asked, limit)
