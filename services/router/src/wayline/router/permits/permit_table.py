"""Permits in Postgres: which jobs have a place among those that may run, and which wait.

Places are counted under a lock of their tenant, and a row says who has one: so however many routers answer, and
whichever of them dies, no more jobs have a place than may run.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Any, NamedTuple

from wayline.contracts.run_controls import AskPermit, NoteParked, Pause, Permit
from wayline.router.permits.permit_rules import WHOSE, Counted, FreePlaces, LimitUse, full_limit
from wayline.store import Connection, Queries, Record, Store

WAITING_AT_ONCE = 500
"""Jobs of a tenant that are looked at together for places."""
GIVEN_AT_ONCE = 500
"""Places that are given before their tickets are queued; the next look gives more."""


class Claim(NamedTuple):
    """A job as limits and pauses count it."""

    job_id: str
    lane: str
    agent: str
    user_id: str | None
    key_id: str | None


class WaitingJob(NamedTuple):
    """A job that is parked, and by which record."""

    tenant: str
    job_id: str
    state: str
    at: int
    lane: str

    @classmethod
    def of(cls, row: Record) -> WaitingJob:
        return cls(*(row[name] for name in cls._fields))


class PermitTable:
    """One row a job that has a place or waits for one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.sql = Queries.load(files("wayline.router.permits").joinpath("queries.sql"))

    async def ask(self, asked: AskPermit) -> Permit:
        """Give a job a place, where nothing holds it; asking again about the same record changes nothing."""
        tenant, sql = asked.tenant, self.sql
        claim = Claim(asked.job_id, asked.lane, asked.agent, asked.user_id, asked.key_id)
        async with self._store.system() as conn:
            await conn.execute(sql.lock_tenant, tenant)
            own = await conn.fetchrow(sql.permit_of_job, tenant, asked.job_id)
            # One that was told to wait has begun nothing, though its holder died before it was parked.
            begun = asked.begun and (own is None or own["state"] == "running")
            row = await conn.fetchrow(sql.pause_of_job, tenant, asked.lane, asked.agent, begun)
            if row is not None:
                await self._put(conn, tenant, claim, "paused", None)
                return Permit(granted=False, why="pause", words=Pause(**dict(row)).words)
            uses = await self._uses(conn, tenant, claim)
            if not uses:
                await conn.execute(sql.drop_permit, tenant, asked.job_id)
                return Permit(granted=True)
            # What runs goes on, also one that began before its limit was set: then it has no row yet.
            full = None if begun or (own is not None and own["state"] == "running") else full_limit(uses)
            if full is not None:
                await self._put(conn, tenant, claim, "waiting", None)
                return Permit(granted=False, why="limit", words=full.words)
            await self._put(conn, tenant, claim, "running", asked.at)
            return Permit(granted=True)

    async def take(self, tenant: str, claim: Claim) -> LimitUse | None:
        """Give a new job its place where a limit would refuse it else; return that limit where it is full."""
        async with self._store.system() as conn:
            await conn.execute(self.sql.lock_tenant, tenant)
            own = await conn.fetchrow(self.sql.permit_of_job, tenant, claim.job_id)
            uses = [] if own is not None else await self._uses(conn, tenant, claim)
            refusing = [use for use in uses if use.when_full == "refuse"]
            if (full := full_limit(refusing)) is not None:
                return full
            if refusing and full_limit(uses) is None:
                # Before any record of its log.
                await self._put(conn, tenant, claim, "running", 0)
            return None

    async def refuses(self, tenant: str) -> bool:
        """Return whether a limit of a tenant refuses jobs."""
        [row] = await self._store.fetch(tenant, self.sql.refuses, tenant)
        return row["exists"]

    async def full(self, tenant: str, claim: Claim) -> LimitUse | None:
        """Return a limit that would refuse a job now; None: it would be let in."""
        async with self._store.system() as conn:
            uses = await self._uses(conn, tenant, claim)
        return full_limit(use for use in uses if use.when_full == "refuse")

    async def parked(self, noted: NoteParked) -> None:
        """Take the place of a job that is parked, and note by which record it is woken."""
        about = noted.tenant, noted.job_id
        async with self._store.system() as conn:
            if noted.why in ("pause", "limit"):
                state = "paused" if noted.why == "pause" else "waiting"
                await conn.execute(self.sql.note_waiting, *about, state, noted.at, noted.lane)
            else:
                await conn.execute(self.sql.leave_place, *about, noted.at)

    async def end(self, tenant: str, job_id: str) -> bool:
        """Take the place of a job that has ended; return whether it had one, or waited for one."""
        return not (await self._store.execute(tenant, self.sql.drop_permit, tenant, job_id)).endswith(" 0")

    async def over_pauses(self, *, at_most: int) -> list[WaitingJob]:
        """Return jobs whose pause is over, of all tenants."""
        async with self._store.system() as conn:
            return [WaitingJob.of(row) for row in await conn.fetch(self.sql.over_pauses, at_most)]

    async def tenants_that_wait(self) -> list[str]:
        """Return the tenants whose jobs wait for a place."""
        async with self._store.system() as conn:
            return [row["tenant"] for row in await conn.fetch(self.sql.tenants_that_wait)]

    async def give_places(self, tenant: str) -> list[WaitingJob]:
        """Give free places to the jobs that have waited longest, and return those: they have no ticket yet."""
        given: list[WaitingJob] = []
        sql = self.sql
        async with self._store.system() as conn:
            await conn.execute(sql.lock_tenant, tenant)
            limits = [tuple(row) for row in await conn.fetch(sql.limits_of_tenant, tenant)]
            free = FreePlaces(limits, [tuple(row) for row in await conn.fetch(sql.running_jobs, tenant)])
            more = True
            # Each round gives a place, at least to its first job; what is full then is passed over in the next.
            while more and len(given) < GIVEN_AT_ONCE:
                full = [free.full(whose) for whose in WHOSE]
                rows = await conn.fetch(sql.waiting_jobs, tenant, *full, WAITING_AT_ONCE)
                more = len(rows) == WAITING_AT_ONCE
                chosen = {row["job_id"]: WaitingJob.of(row) for row in rows if free.take(_counted(row))}
                about = list(chosen), [job.at for job in chosen.values()]
                for row in await conn.fetch(sql.give_places, tenant, *about):
                    given.append(chosen[row["job_id"]]._replace(state="running"))
        return given

    async def note_told(self, job: WaitingJob) -> None:
        """Note that the bus has the ticket of a job with a new place."""
        await self._store.execute(job.tenant, self.sql.note_told, job.tenant, job.job_id, job.at)

    async def drop(self, job: WaitingJob) -> None:
        """Forget a job that is not as its row says any more; a row that has changed since stays."""
        await self._store.execute(job.tenant, self.sql.drop_permit_at, job.tenant, job.job_id, job.state, job.at)

    async def untold(self, *, after_s: float, at_most: int) -> list[WaitingJob]:
        """Return jobs with a place whose ticket the bus may not have."""
        async with self._store.system() as conn:
            return [WaitingJob.of(row) for row in await conn.fetch(self.sql.untold_jobs, after_s, at_most)]

    async def old(self, place: tuple[str, str], *, after_s: float, at_most: int) -> list[WaitingJob]:
        """Return rows that are so old, behind a place, of all tenants."""
        async with self._store.system() as conn:
            return [WaitingJob.of(row) for row in await conn.fetch(self.sql.old_permits, after_s, *place, at_most)]

    async def _uses(self, conn: Connection, tenant: str, claim: Claim) -> list[LimitUse]:
        about: Iterable[Any] = (claim.job_id, claim.agent, claim.user_id, claim.key_id)
        return [LimitUse.of(row) for row in await conn.fetch(self.sql.limits_of_job, tenant, *about)]

    async def _put(self, conn: Connection, tenant: str, claim: Claim, state: str, at: int | None) -> None:
        about = claim.job_id, state, at, claim.lane, claim.agent, claim.user_id, claim.key_id
        await conn.execute(self.sql.put_permit, tenant, *about)


def _counted(row: Record) -> Counted:
    return Counted(*(row[name] for name in Counted._fields))
