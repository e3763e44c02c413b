"""Actions on many jobs in Postgres: taken by one gateway at a time, page by page."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_hex
from typing import Any, Literal, TypeAlias

import orjson

from wayline.contracts.errors import Conflict
from wayline.gateway.keys import Caller
from wayline.gateway.shapes.job_actions import ActionBody, Outcome
from wayline.store import Record, Store

HELD_S = 60.0
"""How long a gateway may take for a page before another one does it again."""
RUNNING_MAX = 5
"""Actions of one tenant at the same time."""
REFUSED_MAX = 50
"""Refused jobs that are told one by one."""
State: TypeAlias = Literal["running", "done", "stopped"]


@dataclass
class Held:
    """An action that this gateway goes on with, and how far it is."""

    tenant: str
    action_id: str
    body: ActionBody
    caller: Caller
    begun_at: datetime
    holder: str
    cursor: str | None
    handled: list[str]
    counts: dict[Outcome, int]
    refused: list[dict[str, str]] = field(default_factory=list)

    def note(self, job_id: str, outcome: Outcome, reason: str = "") -> None:
        """Note what became of a job."""
        self.handled.append(job_id)
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        if outcome == "refused" and len(self.refused) < REFUSED_MAX:
            self.refused.append({"job_id": job_id, "reason": reason[:300]})

    @property
    def left(self) -> int:
        """Return to how many jobs more it may be done."""
        return self.body.limit - sum(self.counts.values())


class JobActions:
    """The table `job_actions`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = store.sql
        self._holder = token_hex(8)

    async def begin(self, caller: Caller, action_id: str, body: ActionBody) -> bool:
        """Write an action down; False: it was asked for before. Raises Conflict where too many go on."""
        tenant, asked = caller.tenant, body.model_dump_json(exclude_defaults=True)
        async with self._store.tenant(tenant) as conn:
            # One after the other: many that are begun at once would all find room.
            await conn.execute(self._sql.lock_change, f"{tenant}/job_actions")
            if await conn.fetchrow(self._sql.get_action, tenant, action_id) is not None:
                return False
            if await conn.fetchval(self._sql.running_actions, tenant) >= RUNNING_MAX:
                raise Conflict(f"{RUNNING_MAX} actions are going on: wait for one, or stop it", code="too_many_actions")
            given = (tenant, action_id, asked, caller.name, sorted(caller.scopes), caller.user_id)
            await conn.execute(self._sql.begin_action, *given, caller.key_id or None)
        return True

    async def get(self, tenant: str, action_id: str) -> Record | None:
        """Return an action as it is now."""
        return await self._store.fetchrow(tenant, self._sql.get_action, tenant, action_id)

    async def listed(
        self, tenant: str, *, user_id: str | None, limit: int, after: tuple[datetime | None, str | None]
    ) -> list[Record]:
        """Return a tenant's actions, or those of a user's key, the newest first."""
        return await self._store.fetch(tenant, self._sql.list_actions, tenant, user_id, limit, *after)

    async def stop(self, tenant: str, action_id: str) -> None:
        """Do it to no further job."""
        await self._store.execute(tenant, self._sql.stop_action, tenant, action_id)

    async def take(self) -> Held | None:
        """Take the action that has waited longest; None: there is none."""
        async with self._store.system() as conn:
            row = await conn.fetchrow(self._sql.take_action, self._holder, HELD_S)
        if row is None:
            return None
        caller = Caller(
            row["tenant"],
            row["asked_by"],
            frozenset(row["scopes"]),
            key_id=row["key_id"] or "",
            user_id=row["user_id"],
        )
        return Held(
            tenant=row["tenant"],
            action_id=row["action_id"],
            body=ActionBody.model_validate(row["asked"]),
            caller=caller,
            begun_at=row["begun_at"],
            holder=self._holder,
            cursor=row["cursor"],
            handled=list(row["handled"]),
            counts=dict(row["counts"]),
            refused=list(row["refused"]),
        )

    async def move(self, held: Held, state: State, *, waits_for: str | None = None, after_s: float = 0.0) -> None:
        """Write down how far it is, and let any gateway go on after a while."""
        told: tuple[Any, ...] = (orjson.dumps(held.counts).decode(), orjson.dumps(held.refused).decode())
        place = (held.tenant, held.action_id, held.holder)
        await self._store.execute(
            held.tenant, self._sql.move_action, *place, state, held.cursor, held.handled, *told, waits_for, after_s
        )
