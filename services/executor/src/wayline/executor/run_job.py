"""Takes a held job as far as it goes here: decide, do, append, until it ends, parks, or is somebody else's."""

from __future__ import annotations

import asyncio

import structlog

from wayline.chassis.worker import pause_s
from wayline.contracts.errors import Full, Retry
from wayline.contracts.events import AuxiliaryRequested, ModelRequested
from wayline.executor.decide.accept_answer import cut_short
from wayline.executor.decide.actions import (
    Action,
    CallModel,
    Cancel,
    Classify,
    Compact,
    Complete,
    Correct,
    Fail,
    NoteLost,
    Park,
    Reroute,
    Resolve,
    RunTools,
    SettleCalls,
)
from wayline.executor.decide.next_action import decide
from wayline.executor.hold.held_job import HandBack, HeldJob
from wayline.executor.perform import auxiliary_call, model_call, park_or_end, tool_calls
from wayline.executor.perform.services import RunServices
from wayline.journal import Fenced
from wayline.telemetry import metrics

log = structlog.get_logger()

STOPPING = "its executor is being stopped"
OVER_SHARE = "its tenant stores far more than its share (WAYLINE_ROUTER_STORED_PER_TENANT_MAX_BYTES)"


async def run_job(hands: RunServices, hold: HeldJob) -> None:
    """Hold a job; its ticket ends acked, handed back or, when we were fenced, forgotten: somebody else lives on it."""
    holder = asyncio.current_task()
    assert holder is not None
    hold.start_beating(holder)
    try:
        await _go(hands, hold)
    except Fenced:
        metrics.jobs_fenced.labels("append").inc()
        log.info("fenced", job=hold.ticket.job_id)
    except HandBack:
        await hold.hand_back(STOPPING)
    except Full as error:
        log.warning("given back", job=hold.ticket.job_id, why=str(error))
        # Room may be long in coming, and each time is a record or two: less and less often.
        await hold.hand_back(str(error), delay_s=pause_s(hold.ticket.delivery))
    except Retry as error:
        log.warning("given back", job=hold.ticket.job_id, why=str(error))
        await hold.hand_back(str(error), delay_s=error.after_s)
    except asyncio.CancelledError:
        if not hold.fenced:
            await hold.hand_back(STOPPING)
    finally:
        hold.stop_beating()


async def _go(hands: RunServices, hold: HeldJob) -> None:
    await hold.attend()
    while True:
        if hold.draining.is_set():
            raise HandBack
        await hold.hear()
        action = decide(hold.pen.job)
        if action is None:
            return
        if isinstance(action, CallModel) and hold.is_over_share:
            action = cut_short(hold.pen.job, OVER_SHARE, "tenant_full")
        if isinstance(action, CallModel):
            action = await model_call.call_model(hands, hold, action)
        if action is not None and await _do(hands, hold, action):
            return


async def _do(hands: RunServices, hold: HeldJob, action: Action) -> bool:
    """Do what the job needs; whether its ticket has been dealt with."""
    match action:
        case NoteLost(ModelRequested() as asked):
            model_call.note_lost(hold, asked)
        case NoteLost(AuxiliaryRequested() as asked):
            auxiliary_call.note_lost(hold, asked)
        case Classify():
            await auxiliary_call.classify(hands, hold, action)
        case Compact():
            await auxiliary_call.compact(hands, hold, action)
        case Reroute():
            model_call.reroute(hold, action)
        case Correct():
            model_call.correct(hold, action)
        case RunTools():
            await tool_calls.run_tools(hands, hold, action)
        case SettleCalls():
            await tool_calls.settle_calls(hands, hold, action)
        case Resolve():
            await tool_calls.resolve(hands, hold, action)
        case Park():
            await park_or_end.park(hands, hold, action)
            return True
        case Complete() | Fail() | Cancel():
            await park_or_end.end(hands, hold, action)
            return True
    return False
