"""Forgets: a walk over all stores that goes on where it was, whatever dies in between.

The plan stands in the tables and no process holds a timer. Jobs are stopped first. Then each store counts what it has
of a batch, the count is noted, and only then it is erased; so the receipt is whole after a crash at any point. At the
end all is searched for again, and what is found is erased in another round. What services send late is erased later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import structlog

from wayline.chassis import Failpoint, Periodic, reach
from wayline.chassis.concurrency.awaited_tasks import stopped
from wayline.chassis.concurrency.each_alone import each_alone
from wayline.chassis.concurrency.work_watch import LOOK_ANYWAY_S
from wayline.contracts.errors import Retry
from wayline.contracts.forgetting import Erased
from wayline.contracts.memory import SubjectRef
from wayline.router.forgetting.erasure_scope import ErasureScope
from wayline.router.forgetting.forget_table import CLAIMED_S, ForgetTable, added
from wayline.router.forgetting.jobs_to_end import JobsToEnd
from wayline.router.forgetting.stores import ErasableStore
from wayline.store import PostgresUnavailable, Record

log = structlog.get_logger()

SEARCHED = -1_000
"""The batch under which it is noted what the search at the end found in rows of others."""
SAME_WORDS = "_with_the_same_words"
LOOK_EVERY_S = 1.0
BATCH_JOBS = 50
"""Jobs whose messages are erased between two beats."""
STOPPED_AFTER_S = 1.0
"""How soon jobs are looked at again that were told to stop."""
OLD_AFTER_S = 600.0
"""How long a job that was admitted is given to get a log."""
ROUNDS_MAX = 5
AGAIN_AFTER_S = 2.0
"""How long what was on its way is given to arrive before another round."""
AWAY_AGAIN_S = 3.0
"""How soon a store is asked again that did not answer."""
SWEEP_AFTER_S = 120.0
"""When what services sent late is erased: spans are exported for some time after a job has ended."""


class Forgetter:
    """Goes on every so often with each request that is due."""

    def __init__(
        self,
        table: ForgetTable,
        jobs: JobsToEnd,
        stores: Sequence[ErasableStore],
        *,
        sweep_after_s: float = SWEEP_AFTER_S,
    ) -> None:
        self._table = table
        self._jobs = jobs
        self._stores = stores
        self._sweep_after_s = sweep_after_s
        self._periodic = Periodic("forgetting", self.look, every_s=LOOK_ANYWAY_S)
        self.start = self._periodic.start
        self.stop = self._periodic.stop
        self.look_now = self._periodic.now

    async def look(self) -> None:
        """Go on with every request that is due."""
        await each_alone("forgetting", await self._table.claim(), self._go_on)

    async def _go_on(self, row: Record) -> None:
        steps = {"stopping": self._stop, "erasing": self._erase, "searching": self._search, "done": self._sweep}
        try:
            async with self._kept(row):
                await steps[row["step"]](row)
        except Retry as error:
            log.warning("put off", what="forgetting", forget=row["forget_id"], why=str(error))
            await self._table.wait(row, str(error), again_after_s=AWAY_AGAIN_S)

    @asynccontextmanager
    async def _kept(self, row: Record) -> AsyncIterator[None]:
        """Keep other routers off a request meanwhile: long logs take minutes."""

        async def beat() -> None:
            while True:
                await asyncio.sleep(CLAIMED_S / 3)
                with suppress(PostgresUnavailable):
                    await self._table.keep_claim(row)

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            await stopped(beating)

    async def _stop(self, row: Record) -> None:
        """Cancel jobs until all have ended and are settled, then put them into batches."""
        if row["what"] == "user" and row["submitted_upto"] is None:
            # Every router lets this user's submissions wait by now. The one that was asked died before it said so.
            await self._table.cut_submissions(row, upto=await self._jobs.last_submission())
            return
        if row["what"] != "subject":
            await self._table.list_jobs(row)
        jobs = await self._table.jobs_to_stop(row, old_after_s=OLD_AFTER_S)
        still_open = await self._jobs.stop(row, jobs)
        if still_open:
            await self._table.wait(row, f"{len(still_open)} jobs to end", again_after_s=STOPPED_AFTER_S)
            return
        if row["what"] == "user" and await self._jobs.has_submissions(row):
            await self._table.wait(row, "submissions from before to be admitted", again_after_s=STOPPED_AFTER_S)
            return
        samples = row["samples"] or await self._jobs.samples(row["tenant"], [job.job_id for job in jobs])
        reach(Failpoint.ROUTER_FORGET_BATCH_BEFORE)
        await self._table.begin_erasing(row, batch_max=BATCH_JOBS, samples=samples)
        reach(Failpoint.ROUTER_FORGET_BATCH_AFTER)
        await self._erase(row)

    async def _erase(self, row: Record) -> None:
        """Count, note and erase, store by store and batch by batch."""
        for batch, scope in await self._scopes(row):
            for store in self._stores:
                await self._erase_from(row, store, batch, scope)
        await self._table.begin_searching(row)
        self.look_now()

    async def _erase_from(self, row: Record, store: ErasableStore, batch: int, scope: ErasureScope) -> None:
        noted = await self._table.count_of(row, store.name, batch)
        if noted is not None and noted["erased_at"] is not None:
            return
        if noted is None:
            found = await store.count(scope, ())
            reach(Failpoint.ROUTER_FORGET_COUNT_BEFORE)
            await self._table.note_count(row, store.name, batch, found)
            reach(Failpoint.ROUTER_FORGET_COUNT_AFTER)
        await store.erase(scope)
        reach(Failpoint.ROUTER_FORGET_ERASE_AFTER)
        await self._table.note_erased(row, store.name, batch)

    async def _search(self, row: Record) -> None:
        """Search for all that was erased; begin another round where something is left, else end."""
        left: dict[str, int] = {}
        for _, scope in await self._scopes(row):
            for store in self._stores:
                found = await store.count(scope, row["samples"] if scope.user_id or scope.subject_ref else ())
                left = added(left, {f"{store.name}.{what}": count for what, count in found.counts.items()})
                if same_words := {what: n for what, n in found.kept.items() if what.endswith(SAME_WORDS)}:
                    await self._table.note_count(row, store.name, SEARCHED, Erased(kept=same_words))
        if left and row["round"] < ROUNDS_MAX:
            log.warning("something was left, another round", forget=row["forget_id"], left=left)
            await self._table.begin_again(row, left, after_s=AGAIN_AFTER_S)
            return
        reach(Failpoint.ROUTER_FORGET_END_BEFORE)
        await self._table.end(row, left, sweep_after_s=self._sweep_after_s)
        reach(Failpoint.ROUTER_FORGET_END_AFTER)
        log.info("forgotten", tenant=row["tenant"], forget=row["forget_id"], what=row["what"], left=left)

    async def _sweep(self, row: Record) -> None:
        """Erase what came late of the jobs, and then forget which they were."""
        for _, jobs in await self._table.batches(row):
            scope = ErasureScope(tenant=row["tenant"], job_ids=jobs)
            for store in self._stores:
                await store.erase(scope)
        await self._table.end_sweep(row)

    async def _scopes(self, row: Record) -> list[tuple[int, ErasureScope]]:
        """Return the batches of jobs, and what is of the user or the subject itself."""
        tenant, is_user = row["tenant"], row["what"] == "user"
        scopes = [
            (batch, ErasureScope(tenant=tenant, job_ids=jobs, with_sessions=is_user))
            for batch, jobs in await self._table.batches(row)
        ]
        if row["what"] == "job":
            return scopes
        subject = None if row["subject_id"] is None else SubjectRef(type=row["subject_type"], id=row["subject_id"])
        return [*scopes, (-row["round"], ErasureScope(tenant=tenant, user_id=row["user_id"], subject_ref=subject))]
