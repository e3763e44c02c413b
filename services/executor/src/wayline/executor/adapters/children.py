"""The jobs that a held job starts: begun and stopped by the router, their ends read from their logs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from wayline.chassis import Bus, Failpoint, keep_trying, reach
from wayline.contracts import ids
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import ChildState, Parent, StartChild
from wayline.executor.decide.approvals import taint_policy
from wayline.executor.decide.children import Task, task_of
from wayline.journal import Call, Job, JobLog, fold, have_ended
from wayline.telemetry import JobTrace


class Children:
    """Every request may be asked again; a router that is away is waited for."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def start(self, job: Job, call: Call, task: Task, *, lane: str, seconds: float) -> str:
        """Start the job of a call, and return its id. Raises Reject."""
        reach(Failpoint.EXECUTOR_CHILD_BEFORE)
        child = await self._ask(job, call, task, lane=lane, seconds=seconds)
        reach(Failpoint.EXECUTOR_CHILD_AFTER)
        return child.job_id

    async def stop(self, job: Job, call: Call, why: str, *, lane: str) -> None:
        """Have the job of a call end; one that was not started yet never begins."""
        task = task_of(job, call)
        if not isinstance(task, Task):
            return
        with suppress(Reject):
            await self._ask(job, call, task, lane=lane, seconds=1, stop=why)
        reach(Failpoint.EXECUTOR_STOP_CHILD_AFTER)

    async def _ask(
        self, job: Job, call: Call, task: Task, *, lane: str, seconds: float, stop: str | None = None
    ) -> ChildState:
        above, policy = job.family.parent, taint_policy(job)
        request = StartChild.model_validate(
            {
                "tenant": job.tenant,
                "parent": Parent(
                    job_id=job.job_id,
                    step=job.model.step,
                    call=call.wanted.call,
                    depth=above.depth + 1 if above else 1,
                    tainted_by=job.tools.tainted_by,
                    ask_when_tainted=policy.acts,
                    ask_egress=policy.egress,
                ),
                "agent": task.agent,
                "input": task.input,
                "user_id": job.life.submitted.user_id if job.life.submitted else None,
                "lane": lane,
                "max_seconds": seconds,
                "stop": stop,
            }
        )
        headers = JobTrace(call.span.trace_id, call.span.span_id).headers() if call.span else None
        return await keep_trying("start a child", lambda: self._bus.ask(request, ChildState, headers=headers))

    async def have_ended(self, tenant: str, job_ids: Sequence[str]) -> bool:
        """Return whether all of these jobs have ended."""
        return await have_ended(self._bus, tenant, job_ids)

    async def ended(self, job: Job, calls: Sequence[Call]) -> dict[str, Job]:
        """Return the jobs of these calls that have ended, each by its call."""
        found = await asyncio.gather(*(self._read(job.tenant, child_of(job, call)) for call in calls))
        return {
            call.wanted.call: child
            for call, child in zip(calls, found, strict=True)
            if child is not None and child.life.ended is not None
        }

    async def _read(self, tenant: str, job_id: str) -> Job | None:
        """Return an ended job, folded from its log; None: it has not ended, or its log is not there."""
        if not await have_ended(self._bus, tenant, (job_id,)):
            return None
        events = [event async for event in JobLog(self._bus, tenant, job_id).read()]
        return fold(events) if events else None


def child_of(job: Job, call: Call) -> str:
    """Return the id of a call's job, whether it was started or not."""
    return ids.child_id(job.tenant, job.job_id, job.model.step, call.wanted.call)
