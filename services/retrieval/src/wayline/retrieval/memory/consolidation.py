"""Consolidate facts, each owner's in one transaction with what undoes it: every hour, and when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from wayline.chassis import Failpoint, Periodic, reach
from wayline.chassis.concurrency.each_alone import each_alone
from wayline.contracts.memory_consolidation import (
    Consolidated,
    ConsolidateMemories,
    ConsolidationUndone,
    UndoConsolidation,
)
from wayline.retrieval.memory.fact_rows import arguments_of, row_of
from wayline.retrieval.memory.fact_rules import KEYS_KEPT_DAYS, expiry
from wayline.retrieval.memory.fact_table import load_queries
from wayline.retrieval.memory.link_subjects import SubjectLinks
from wayline.retrieval.memory.plan_consolidation import UNUSED_DAYS, Step, before_of, plan_consolidation
from wayline.retrieval.memory.plan_save import Owner
from wayline.store import Connection, Record, Store
from wayline.store.queries import Queries

OWNERS_MAX = 200
"""Users and subjects of one run; there may be more to do."""
TENANTS_MAX = 1_000
SWEPT_AT_ONCE = 10_000
EVERY_S = 3_600.0
SCHEDULE = "the hourly consolidation"


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Consolidation:
    """Keeps facts in order, and undoes what it did."""

    store: Store
    model: str
    now: Callable[[], datetime] = _now
    sql: Queries = field(default_factory=load_queries)
    links: SubjectLinks = field(init=False)

    def __post_init__(self) -> None:
        self.links = SubjectLinks(self.store, self.sql)

    async def run(self, asked: ConsolidateMemories) -> Consolidated:
        """Consolidate the facts of a user, or of all of a tenant that have something to do."""
        now, run_id = self.now(), uuid4().hex
        owners = [f"user:{asked.user_id}"] if asked.user_id is not None else await self._due(asked.tenant, now)
        steps: list[Step] = []
        for owner in owners:
            steps += await self._owner(asked, owner, run_id, now, place=len(steps))
        links, more = await self.links.find(asked, run_id) if asked.user_id is None else ([], False)
        done = bool(steps or links) and not asked.dry_run
        told = tuple(step.told for step in steps)
        more = more or len(owners) == OWNERS_MAX
        return Consolidated(run_id=run_id if done else None, steps=told, links=tuple(links), more=more)

    async def undo(self, asked: UndoConsolidation) -> ConsolidationUndone:
        """Bring back what a run took away, the last first; what was changed since stays as it is."""
        undone = skipped = 0
        async with self.store.tenant(asked.tenant) as conn:
            for step in await conn.fetch(self.sql.steps_of_run, asked.tenant, asked.run_id):
                if await self._undo(conn, asked, step):
                    undone += 1
                else:
                    skipped += 1
            await conn.execute(self.sql.end_run, asked.tenant, asked.run_id, asked.by)
            reach(Failpoint.RETRIEVAL_UNDO_BEFORE)
        reach(Failpoint.RETRIEVAL_UNDO_AFTER)
        return ConsolidationUndone(undone=undone, skipped=skipped)

    async def _undo(self, conn: Connection, asked: UndoConsolidation, step: Record) -> bool:
        if step["what"] == "linked":
            return await self.links.take_back(conn, asked.tenant, step, by=asked.by)
        owner = await conn.fetchval(self.sql.owner_of_fact, asked.tenant, step["fact_id"])
        if owner is None:
            return False
        await conn.execute(self.sql.lock_owner, asked.tenant, owner)
        return await self._bring_back(conn, asked.tenant, step)

    async def all_tenants(self) -> None:
        """Consolidate what is due of every tenant."""
        now = self.now()
        async with self.store.system() as conn:
            rows = await conn.fetch(self.sql.tenants_due, now, now - timedelta(days=UNUSED_DAYS), TENANTS_MAX)

        async def one(tenant: str) -> None:
            await self.run(ConsolidateMemories(tenant=tenant, by=SCHEDULE))

        await each_alone("consolidation of memories", [row["tenant"] for row in rows], one)
        await self._sweep(now)

    async def _sweep(self, now: datetime) -> None:
        """Forget uses and keys that no call repeats any more, and where facts were used, some in each transaction."""
        oldest = now - timedelta(days=KEYS_KEPT_DAYS)
        for statement in (self.sql.sweep_uses, self.sql.sweep_writes, self.sql.sweep_conversations):
            swept = SWEPT_AT_ONCE
            while swept == SWEPT_AT_ONCE:
                async with self.store.system() as conn:
                    swept = int((await conn.execute(statement, oldest, SWEPT_AT_ONCE)).rsplit(" ", 1)[-1])

    async def _due(self, tenant: str, now: datetime) -> list[str]:
        unused = now - timedelta(days=UNUSED_DAYS)
        rows = await self.store.fetch(tenant, self.sql.owners_due, tenant, now, unused, OWNERS_MAX)
        return [row["owner"] for row in rows]

    async def _owner(
        self, asked: ConsolidateMemories, owner: str, run_id: str, now: datetime, *, place: int
    ) -> list[Step]:
        async with self.store.tenant(asked.tenant) as conn:
            await conn.execute(self.sql.lock_owner, asked.tenant, owner)
            rows = [row_of(row) for row in await conn.fetch(self.sql.live_facts, asked.tenant, owner)]
            steps = plan_consolidation(rows, now)
            if not asked.dry_run:
                for number, step in enumerate(steps, start=place):
                    await self._apply(conn, asked, step, f"{run_id}/{number:06}", now)
                    reach(Failpoint.RETRIEVAL_CONSOLIDATE_STEP)
        if steps and not asked.dry_run:
            reach(Failpoint.RETRIEVAL_CONSOLIDATE_AFTER)
        return steps

    async def _apply(
        self, conn: Connection, asked: ConsolidateMemories, step: Step, change_id: str, now: datetime
    ) -> None:
        fact, tenant, sql = step.row.fact, asked.tenant, self.sql
        state = "expired" if step.told.what == "expired" else "superseded"
        await conn.execute(sql.retire_fact, tenant, fact.fact_id, fact.version, state, step.told.reason, now)
        if step.into is not None:
            into = step.into.fact
            await conn.execute(sql.absorb_fact, tenant, into.fact_id, into.version, fact.times)
        if step.next_version is not None:
            owner = Owner(fact.kind, fact.user_id, fact.subject, fact.other_subject)
            arguments = arguments_of(
                tenant, owner, step.next_version, key=None, model=self.model, retired=None, now=now
            )
            await conn.execute(sql.insert_fact, *arguments)
        before = before_of(fact, into=step.told.into)
        told = (step.told.what, asked.by, step.told.reason, change_id.partition("/")[0], before)
        await conn.execute(sql.note_step, tenant, change_id, fact.fact_id, fact.version, *told)

    async def _bring_back(self, conn: Connection, tenant: str, step: Record) -> bool:
        fact_id, version, before = step["fact_id"], step["version"], step["before"]
        now = self.now()
        if step["what"] == "summary":
            return await conn.fetchval(self.sql.take_back_summary, tenant, fact_id, version, now) is not None
        if step["what"] == "summarized" and await conn.fetchval(self.sql.summary_stands, tenant, before["into"]):
            # The summary was changed or summarised since, and stays: so does what it stands for.
            return False
        if step["what"] == "demoted":
            await conn.execute(self.sql.retire_fact, tenant, fact_id, version + 1, "superseded", "undone", now)
        expires_at = datetime.fromisoformat(before["expires_at"]) if before["expires_at"] else None
        if expires_at is not None and expires_at <= now:
            # Else it would end again at once.
            expires_at = expiry(before["tier"], now) or now + timedelta(days=UNUSED_DAYS)
        back = await conn.fetchval(self.sql.bring_back, tenant, fact_id, version, before["state"], expires_at)
        if back is not None and before["into"] is not None:
            await self._give_back(conn, tenant, before)
        return back is not None

    async def _give_back(self, conn: Connection, tenant: str, before: dict[str, Any]) -> None:
        row = await conn.fetchrow(self.sql.live_version, tenant, before["into"])
        if row is not None and row["times"] > before["times"]:
            await conn.execute(self.sql.absorb_fact, tenant, before["into"], row["version"], -before["times"])


class HourlyConsolidation:
    """Consolidates every tenant's facts every hour; several replicas do no harm to each other."""

    def __init__(self, consolidation: Consolidation, *, every_s: float = EVERY_S) -> None:
        self._periodic = Periodic("consolidation of memories", consolidation.all_tenants, every_s=every_s)
        self.start = self._periodic.start
        self.stop = self._periodic.stop
