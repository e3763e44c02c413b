"""What follows a job's last record here: the reply, the settlement, the wake-up, and only then the ack."""

from __future__ import annotations

import structlog

from wayline.chassis import Bus, Failpoint, reach
from wayline.contracts.budgets import ReleaseBudget
from wayline.contracts.errors import Retry, WaylineError
from wayline.contracts.events import JobParked
from wayline.contracts.jobs import JobWoken, RunJob, WakeJob
from wayline.executor.adapters.budgets import Budgets
from wayline.executor.adapters.children import Children
from wayline.executor.adapters.permits import Permits
from wayline.executor.adapters.session_histories import SessionHistories
from wayline.executor.adapters.task_graphs import TaskGraphs
from wayline.executor.adapters.wait_ends import WaitEnds
from wayline.executor.hold.signals import newest
from wayline.executor.hold.steering import is_for
from wayline.journal import Head, Job, JobLog, send_result

log = structlog.get_logger()


class FollowUp:
    """The steps between a record that ends or parks a job and the ack of its ticket; each may be repeated."""

    def __init__(
        self, bus: Bus, budgets: Budgets, histories: SessionHistories, children: Children, permits: Permits
    ) -> None:
        self._bus = bus
        self._permits = permits
        self._plans = TaskGraphs(bus)
        self._children = children
        self._histories = histories
        self._budgets = budgets
        self.wait_ends = WaitEnds(bus)

    async def ended(self, job: Job) -> None:
        """Reply to the client, settle what was reserved, leave a plan for later ones: then the ticket is acked."""
        await send_result(self._bus, job)
        reach(Failpoint.EXECUTOR_REPLY_AFTER)
        await self._budgets.settle(job)
        reach(Failpoint.EXECUTOR_SETTLE_AFTER)
        await self._plans.save(job)
        if job.life.scheduled:
            await self.wait_ends.withdraw_all(job)

    async def parked(self, tenant: str, head: Head, last: JobParked) -> None:
        """Give back what was held and not spent, queue a wake-up for a signal that came meanwhile.

        A holder never resumes the job that it parked: once parked, its own ticket is good for an ack only.
        """
        job_id = last.job_id
        if last.kept_usd is not None:
            kept = ReleaseBudget(tenant=tenant, job_id=job_id, spent_usd=last.kept_usd, seq=last.seq)
            await self._budgets.release(kept)
        await self._permits.parked(tenant, job_id, at=head.sequence, lane=head.lane, why=last.waiting.why)
        signalled = await newest(self._bus, tenant, job_id) > head.signals_seen
        if signalled or await self._turn_has_come(tenant, last) or await self._children_have_ended(tenant, last):
            await self._queue(tenant, job_id, head)

    async def steered(self, job: Job, told: set[str]) -> None:
        """Wake the jobs whose words a call of this one says, so that they end; `told`: those that were woken.

        One that is not woken ends when this job has ended.
        """
        for job_id in job.session.steered_by:
            if job_id in told:
                continue
            try:
                await self._wake_steered(job, job_id)
            except Retry as error:
                log.warning("put off", what="the end of a job whose words are said", job=job_id, why=str(error))
                return
            told.add(job_id)

    async def _wake_steered(self, job: Job, job_id: str) -> None:
        head = await JobLog(self._bus, job.tenant, job_id).last()
        if head is None or not is_for(head, job.job_id):
            return
        reach(Failpoint.EXECUTOR_STEER_BEFORE)
        await self._queue(job.tenant, job_id, head)
        reach(Failpoint.EXECUTOR_STEER_AFTER)

    async def _queue(self, tenant: str, job_id: str, head: Head) -> None:
        """Have the router queue a parked job where its tenant's turn has it."""
        try:
            await self._bus.ask(WakeJob(tenant=tenant, job_id=job_id, at=head.sequence, lane=head.lane), JobWoken)
        except WaylineError as error:
            # No router answers, this executor may not ask on a bus whose rights are older, or the router fails: no job
            # waits for its place in a queue.
            log.info("queued without a router", job=job_id, why=str(error))
            wake = RunJob(tenant=tenant, lane=head.lane, job=job_id, at=head.sequence)
            await self._bus.publish(wake, msg_id=wake.msg_id)

    async def _children_have_ended(self, tenant: str, last: JobParked) -> bool:
        """Return whether all jobs ended meanwhile for which a job is parked: their own ends found it not parked yet."""
        children = last.waiting.children
        return bool(children) and await self._children.have_ended(tenant, children)

    async def _turn_has_come(self, tenant: str, last: JobParked) -> bool:
        """Return whether the jobs ended meanwhile whose end a job is parked for."""
        after = last.waiting.after
        return after is not None and await self._histories.turn_has_come(tenant, after)
