"""Takes a held job as far as it goes here: decide, perform, note, until it ends, parks, or is another holder's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from wayline.chassis.handling.worker import pause_s
from wayline.contracts.errors import Full, Retry
from wayline.contracts.events import ModelRequested
from wayline.contracts.jobs import Status
from wayline.executor.decide import actions as a
from wayline.executor.decide.accept_answer import cut_short
from wayline.executor.decide.next_action import decide
from wayline.executor.decide.permitted import begins_something
from wayline.executor.hold.held_job import HandBack, HeldJob
from wayline.executor.hold.log_writer import Draft
from wayline.executor.hold.ticket_end import Acked, Forgotten, TicketEnd
from wayline.executor.perform import (
    approvals,
    auxiliary_call,
    children,
    client_calls,
    extract_memories,
    model_call,
    park_or_end,
    rerank_passages,
    rewrite_query,
    run_program,
    summarize_memories,
    tool_calls,
)
from wayline.executor.perform.job_run import JobRun, OtherAction, Outcome, RunServices
from wayline.journal import Fenced
from wayline.telemetry import metrics

log = structlog.get_logger()

STOPPING = "its executor is being stopped"
OVER_SHARE = "its tenant stores far more than its share (WAYLINE_ROUTER_STORED_PER_TENANT_MAX_BYTES)"


async def note_lost(run: JobRun, action: a.NoteLost) -> tuple[Draft, ...]:
    """Return the end of a call that nobody saw end: its holder was killed."""
    asked = action.asked
    return (
        model_call.lost(asked) if isinstance(asked, ModelRequested) else auxiliary_call.lost(run.writer.job, asked),
    )


PERFORM: dict[type[a.Action], Callable[[JobRun, Any], Awaitable[Outcome]]] = {
    a.CallModel: model_call.call_model,
    a.NoteLost: note_lost,
    a.Classify: auxiliary_call.classify,
    a.Compact: auxiliary_call.compact,
    a.Summarize: auxiliary_call.summarize,
    a.Rewrite: rewrite_query.rewrite,
    a.Rerank: rerank_passages.rerank,
    a.ExtractFacts: extract_memories.extract,
    a.SaveFacts: extract_memories.save,
    a.SummarizeFacts: summarize_memories.summarize,
    a.KeepSummaries: summarize_memories.keep,
    a.Reroute: model_call.reroute,
    a.Correct: model_call.correct,
    a.RunTools: tool_calls.run_tools,
    a.GiveOut: client_calls.give_out,
    a.AskApproval: approvals.ask_approval,
    a.EndDenied: approvals.end_denied,
    a.RunProgram: run_program.run_program,
    a.StartChildren: children.start_children,
    a.AwaitChildren: children.await_children,
    a.StopChildren: children.stop_children,
    a.SettleCalls: tool_calls.settle_calls,
    a.Resolve: tool_calls.resolve,
    a.Park: park_or_end.park,
    a.Complete: park_or_end.end,
    a.Fail: park_or_end.end,
    a.Cancel: park_or_end.end,
}
"""Who performs which action. A performer appends its intent itself, before any effect; what came of it, it returns."""


async def run_job(services: RunServices, held: HeldJob) -> TicketEnd:
    """Hold a job, and return how its ticket ends: forgotten where we were fenced, as another holder lives on it."""
    holder = asyncio.current_task()
    assert holder is not None
    held.start_beating(holder)
    try:
        await _go(JobRun(services, held, held.writer))
    except Fenced:
        metrics.jobs_fenced.labels("append").inc()
        log.info("fenced", job=held.ticket.job_id)
        return Forgotten()
    except HandBack:
        return await held.hand_back(STOPPING)
    except Full as error:
        # Room may be long in coming, and each time is a record or two: less and less often.
        return await held.hand_back(str(error), delay_s=pause_s(held.ticket.delivery))
    except Retry as error:
        return await held.hand_back(str(error), delay_s=error.after_s)
    except asyncio.CancelledError:
        return Forgotten() if held.fenced else await held.hand_back(STOPPING)
    finally:
        held.stop_beating()
    return Acked()


async def _go(run: JobRun) -> None:
    await run.held.attend()
    while run.writer.job.life.status is Status.RUNNING:
        if run.held.draining.is_set():
            raise HandBack
        if run.held.told:
            await run.held.hear()
        action = decide(run.writer.job)
        if isinstance(action, a.CallModel) and run.held.is_over_share:
            action = cut_short(run.writer.job, OVER_SHARE, "tenant_full")
        if begins_something(run.writer.job, action):
            action = await _unless_it_waits(run, action)
        while action is not None:
            action = await _perform(run, action)


async def _unless_it_waits(run: JobRun, action: a.Action | None) -> a.Action | None:
    """Return the action, or the park of a job that may not run now: what it belongs to is paused, or has no place."""
    held, writer = run.held, run.writer
    about = {"lane": writer.head.lane, "at": held.ticket.at}
    waiting = await run.services.permits.wait(writer.job, **about, begun=held.begun, first=not held.has_permit)
    if waiting is not None:
        return a.Park(waiting)
    held.begun = held.has_permit = True
    return action


async def _perform(run: JobRun, action: a.Action) -> a.Action | None:
    """Perform an action and note what came of it, or return what the job needs instead."""
    try:
        outcome = await PERFORM[type(action)](run, action)
        if isinstance(outcome, OtherAction):
            return outcome.action
        # Nothing is awaited between an effect and its note: a stop would lose what is paid for.
        run.writer.note_all(outcome)
    finally:
        if run.has_borrowed:
            await run.end_step()
    return None
