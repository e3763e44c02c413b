"""Gives calls of the caller's own tools out to it: the log says so, and the job's park."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from wayline.contracts.tools import ToolReply
from wayline.executor.decide.actions import GiveOut
from wayline.executor.decide.client_calls import expires_at, misfit_of
from wayline.executor.decide.repeated_calls import answered_before
from wayline.executor.hold.log_writer import Draft
from wayline.executor.perform.earlier_results import read_shown_result
from wayline.executor.perform.job_run import JobRun
from wayline.executor.perform.tool_calls import RepeatedResult, ended, intend
from wayline.executor.perform.unread_calls import unread_reply
from wayline.journal import Call


async def give_out(run: JobRun, action: GiveOut) -> Iterable[Draft]:
    """Note every intent, and the ends of calls that nobody has to run. The next record says both."""
    until = expires_at(run.writer.job, datetime.now(UTC), at_most_s=run.services.decision_ttl_s)
    ends: list[Draft] = []
    for call in action.calls:
        answer = await _answer(run, call)
        begun = intend(run, call, expires_at=until)
        if answer is not None:
            ends.append(ended(run, run.writer.job.model.step, begun, answer))
    return ends


async def _answer(run: JobRun, call: Call) -> ToolReply | RepeatedResult | None:
    """Return what a call is answered with that is not given out; None: it is."""
    job = run.writer.job
    if (same := answered_before(job, call)) and (again := await read_shown_result(run.writer, same.step, same.number)):
        return RepeatedResult(same, again)
    return unread_reply(job, call) or misfit_of(job, call)
