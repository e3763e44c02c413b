"""Starts the jobs that a held job's model asks for, reads their ends, and stops them where the job itself ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts.budgets import ReleaseBudget
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import PARENT_CANCELLED, PARENT_LATE, SECONDS_MAX, Waiting
from wayline.contracts.tools import ToolError, ToolReply
from wayline.executor.adapters.children import child_of
from wayline.executor.decide.actions import AwaitChildren, Park, StartChildren, StopChildren
from wayline.executor.decide.children import Task, end_of, over_limit, refused, reply_of, task_of
from wayline.executor.decide.repeated_calls import answered_before
from wayline.executor.hold.held_job import Cancelled
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.perform.earlier_results import read_shown_result
from wayline.executor.perform.job_run import JobRun, OtherAction, Outcome
from wayline.executor.perform.tool_calls import STOPPED_BECAUSE, RepeatedResult, ended, intend
from wayline.executor.perform.unread_calls import unread
from wayline.journal import Call, Job
from wayline.llm.broken_json.tool_arguments import UNREADABLE

STOP_WAIT_S = 60.0
"""How long a job that ends waits for those that it has told to stop."""

STOP = "stop-"
"""How the ids of such waits begin."""

Started = ToolReply | RepeatedResult | str
"""What became of the start of a job: a refusal, an earlier result, or its id."""


async def start_children(run: JobRun, action: StartChildren) -> Outcome:
    """Write every intent, give back the money that the next model call would have needed, and start the jobs."""
    calls = [intend(run, call) for call in action.calls]
    await run.writer.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
    try:
        started = await run.held.listening(_start_all(run, calls), seconds=run.held.seconds_left)
    except Cancelled:
        # What may have been started is stopped next.
        return ()
    except TimeoutError:
        return await stop_children(run, StopChildren(tuple(calls), "timeout"))
    return [_began(run, call, one) for call, one in zip(calls, started, strict=True)]


async def _start_all(run: JobRun, calls: Sequence[Call]) -> list[Started]:
    job = run.writer.job
    if job.money.held_usd is not None and job.money.spent_usd is not None:
        # They share its budget: what it holds for a call that it does not make now would be missing to them.
        given = ReleaseBudget(tenant=job.tenant, job_id=job.job_id, spent_usd=job.money.spent_usd, seq=job.seq)
        await run.services.budgets.release(given)
    wanted = [await _wanted(run, call) for call in calls]
    limits, place = run.services.child_limits, 0
    for number, task in enumerate(wanted):
        if isinstance(task, Task):
            wanted[number] = over_limit(job, limits, place=place) or task
            place += 1
    return await asyncio.gather(*(_start(run, call, task) for call, task in zip(calls, wanted, strict=True)))


async def _wanted(run: JobRun, call: Call) -> Task | ToolReply | RepeatedResult:
    """Return what a call asks for, or its result where nothing is to be started."""
    job = run.writer.job
    if (same := answered_before(job, call)) and (again := await read_shown_result(run.writer, same.step, same.number)):
        return RepeatedResult(same, again)
    if UNREADABLE in call.meant.arguments:
        return refused("invalid_arguments", unread(job, call))
    return task_of(job, call)


async def _start(run: JobRun, call: Call, task: Task | ToolReply | RepeatedResult) -> Started:
    if not isinstance(task, Task):
        return task
    job, lane = run.writer.job, run.writer.head.lane
    try:
        return await run.services.children.start(job, call, task, lane=lane, seconds=run.held.seconds_left)
    except Reject as error:
        return refused("refused", f"{task.agent} was not started ({error.code}): {error}")


def _began(run: JobRun, call: Call, started: Started) -> Draft:
    step = run.writer.job.model.step
    if not isinstance(started, str):
        return ended(run, step, call, started)
    task = task_of(run.writer.job, call)
    assert isinstance(task, Task)
    named: dict[str, Any] = {"step": step, "call": call.wanted.call}
    return draft(e.ChildStarted, call.span, **named, child_id=started, agent=task.agent)


async def await_children(run: JobRun, action: AwaitChildren) -> Outcome:
    """Return the results of all children once the last of them has ended; park the job until then."""
    try:
        found = await run.held.listening(_ended(run, action.calls))
    except Cancelled:
        return ()
    if len(found) == len(action.calls):
        return [_result(run, call, found[call.wanted.call]) for call in action.calls]
    return OtherAction(Park(_waiting(run, action.calls, found, beside=action.beside)))


async def _ended(run: JobRun, calls: Sequence[Call]) -> dict[str, Job]:
    """Return the jobs of these calls that have ended; once all have, each is settled."""
    found = await run.services.children.ended(run.writer.job, calls)
    if len(found) == len(calls):
        # Their executors may not have come to it yet: what they held would count as spent, and end this job too early.
        await asyncio.gather(*map(run.services.budgets.settle, found.values()))
    return found


async def stop_children(run: JobRun, action: StopChildren) -> Outcome:
    """Have children end, and park the job until they have; those that take too long are left to themselves.

    Another cancel changes nothing; a drain hands the job back, and its next holder asks the same again.
    """
    await run.writer.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
    job = run.writer.job
    tasks = [(call, task_of(job, call)) for call in action.calls]
    calls = [call for call, task in tasks if isinstance(task, Task)]
    found = await run.held.listening(_stop_all(run, action, calls), cancellable=False)
    if len(found) < len(calls) and not job.family.overdue:
        wait_id, until = _stop_wait(job)
        return OtherAction(Park(_waiting(run, calls, found, wait_id=wait_id, expires_at=until)))
    return [_stopped(run, call, task, found.get(call.wanted.call), action) for call, task in tasks]


def _stop_wait(job: Job) -> tuple[str, datetime]:
    """Return the wait for children that were told to stop: the same however often the job is woken meanwhile."""
    before = job.life.waited
    if before is not None and before.wait_id.startswith(STOP) and before.expires_at is not None:
        return before.wait_id, before.expires_at
    return f"{STOP}{job.seq}", datetime.now(UTC) + timedelta(seconds=STOP_WAIT_S)


async def _stop_all(run: JobRun, action: StopChildren, calls: Sequence[Call]) -> dict[str, Job]:
    """Tell the jobs of these calls to stop, and return those that have ended."""
    job = run.writer.job
    why = PARENT_CANCELLED if action.why == "cancelled" else PARENT_LATE
    await asyncio.gather(*(run.services.children.stop(job, call, why, lane=run.writer.head.lane) for call in calls))
    return await run.services.children.ended(job, calls)


def _stopped(run: JobRun, call: Call, task: Task | ToolReply, child: Job | None, action: StopChildren) -> Draft:
    if isinstance(task, ToolReply):
        return ended(run, run.writer.job.model.step, call, task)
    return _left(run, call, action) if child is None else _result(run, call, child)


def _waiting(
    run: JobRun,
    calls: Sequence[Call],
    found: dict[str, Job],
    *,
    beside: Waiting | None = None,
    wait_id: str | None = None,
    expires_at: datetime | None = None,
) -> Waiting:
    """Return the wait for the children that have not ended, and for the people that the job waits for beside them."""
    job = run.writer.job
    children = tuple(child_of(job, call) for call in calls if call.wanted.call not in found)
    if beside is not None:
        return beside.model_copy(update={"children": children})
    if expires_at is None:
        assert job.life.created_at is not None
        expires_at = job.life.created_at + timedelta(seconds=SECONDS_MAX)
    return Waiting(why="children", wait_id=wait_id or f"children-{job.seq}", children=children, expires_at=expires_at)


def _result(run: JobRun, call: Call, child: Job) -> Draft:
    """Return the end of a call as its job ended."""
    made = ended(run, run.writer.job.model.step, call, reply_of(child))
    return made._replace(payload={**made.payload, "child": end_of(child)})


def _left(run: JobRun, call: Call, action: StopChildren) -> Draft:
    """Return the end of a call whose job was told to stop and has not ended."""
    child_id = child_of(run.writer.job, call)
    code = "timeout" if action.why == "timeout" else "cancelled"
    message = (
        f"{STOPPED_BECAUSE[action.why]}: job {child_id} was told to stop and had not ended after {STOP_WAIT_S:g} s"
    )
    reply = ToolReply(status="failed", error=ToolError(code=code, message=message))
    made = ended(run, run.writer.job.model.step, call, reply)
    return made._replace(payload={**made.payload, "child": e.ChildEnd(job_id=child_id, status=None)})
