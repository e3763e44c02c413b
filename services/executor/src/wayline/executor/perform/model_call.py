"""One model call of a held job: everything that may stand in its way, the call, and how it ended."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from functools import partial
from typing import Any

from wayline.chassis import Failpoint, reach
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.base import slim
from wayline.contracts.chat import NoteMessage
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import Failure
from wayline.contracts.money import Usage
from wayline.contracts.tools import ToolDefinition
from wayline.executor.adapters.model_providers import Heard
from wayline.executor.decide import worst_case
from wayline.executor.decide.actions import Action, CallModel, Correct, Fail, Reroute
from wayline.executor.decide.retry_or_reroute import when_shut
from wayline.executor.hold.held_job import Cancelled, HeldJob
from wayline.executor.perform import paid_call
from wayline.executor.perform.attached_files import load_attachments, returned_bytes
from wayline.executor.perform.paid_call import Lapse
from wayline.executor.perform.park_or_end import expiry
from wayline.executor.perform.services import RunServices
from wayline.executor.perform.tell_model import compared, note_news, offered
from wayline.journal import Job
from wayline.llm import File, Finished, ModelError, ModelRequest, saved
from wayline.llm.prices import LOCAL
from wayline.telemetry import metrics

SPREAD = 0.1
"""A wait is longer by up to this share, so that those who were sent away together do not come back together."""


async def call_model(hands: RunServices, hold: HeldJob, action: CallModel) -> Action | None:
    """Write the intent, ask the model, note what it said or why it did not.

    Returns what the job needs instead where the call may not be made: that is seen only here, not in the log.
    """
    try:
        tools = await _tools(hands, hold)
        if isinstance(tools, Fail):
            return tools
        await _wait(hold, action.delay_s)
    except Cancelled:
        return None
    if not _sends_files(hold.pen.job):
        return await _call(hands, hold, action, tools, None)
    async with load_attachments(hands, hold) as files:
        return await _call(hands, hold, action, tools, files) if isinstance(files, dict) else files


def _sends_files(job: Job) -> bool:
    return job.card.provider not in LOCAL and (bool(job.attachments) or returned_bytes(job) > 0)


async def _call(
    hands: RunServices,
    hold: HeldJob,
    action: CallModel,
    tools: tuple[ToolDefinition, ...],
    files: dict[str, File] | None,
) -> Action | None:
    """Make the call, with what it sends beside its messages, unless its model may not be called now."""
    try:
        instead = await _pass_gate(hands, hold)
        if instead is not None:
            return instead
    except Cancelled:
        return None
    assert hold.pen.job.route is not None
    name, passage = hold.pen.job.route.name, _Passage()
    try:
        request = await _intend(hands, hold, action, tools, files)
        if not isinstance(request, ModelRequest):
            return request
        await _hear(hands, hold, request, passage)
        return None
    finally:
        await hands.gates.leave(name, error=passage.error, spoke=passage.spoke)


class _Passage:
    """What a call has told of its provider."""

    error: ModelError | None = None
    spoke = False


async def _tools(hands: RunServices, hold: HeldJob) -> tuple[ToolDefinition, ...] | Fail:
    job = hold.pen.job
    assert job.submitted is not None
    tools = hands.tools.known(job)
    if tools is None:
        # The registry may be away for long: a cancel is heard, and the process's end is not held up.
        tools = await hold.listening(hands.tools.offered(job), finish_when_draining=False)
    required = job.submitted.options.required_tools
    # Only before the first call: a server that comes and goes later costs an answer, not the job.
    if not required or job.tools is not None:
        return tools
    missing = set(required) - {tool.name for tool in tools}
    if not missing:
        return tools
    names = ", ".join(sorted(missing))
    return Fail(Failure(code="missing_tools", message=f"the job requires tools its agent does not have: {names}"))


async def _wait(hold: HeldJob, seconds: float) -> None:
    if seconds:
        await hold.listening(asyncio.sleep(seconds * (1 + SPREAD * random.random())), finish_when_draining=False)


async def _pass_gate(hands: RunServices, hold: HeldJob) -> Action | None:
    """Wait while the model may not be called, or say what to do instead of waiting."""
    assert hold.pen.job.route is not None
    waited_s = 0.0
    while (shut := await hands.gates.enter(hold.pen.job.route.name)) is not None:
        instead = when_shut(hold.pen.job, wait_s=shut.wait_s, waited_s=waited_s, why=shut.why)
        if instead is not None:
            return instead
        await _wait(hold, shut.wait_s)
        waited_s += shut.wait_s
    return None


async def _intend(
    hands: RunServices,
    hold: HeldJob,
    action: CallModel,
    listed: tuple[ToolDefinition, ...],
    files: dict[str, File] | None,
) -> ModelRequest | Action | None:
    """Write down what will be asked, with the money for it held; or what the job needs instead, None: to look again."""
    pen = hold.pen
    note_news(pen, listed, hands.notes)
    job = pen.job
    tools = offered(job, listed)
    request = hands.models.request(job, step=action.step, attempt=action.attempt, tools=tools, files=files)
    prefix = hold.prints.segments(request)
    prompt_tokens = worst_case.most_tokens(request, prefix)
    wanted, request = request.max_output_tokens, worst_case.fitted(job, request, prompt_tokens)
    worst_usd = worst_case.worst_usd(request, prompt_tokens, at=job.at)
    seen = pen.signals_seen
    try:
        extended = await paid_call.fund(hands, hold, request, worst_usd, waits=worst_case.would_wait(job))
    except Cancelled:
        return None
    except Reject as error:
        return Fail(Failure(code=error.code, message=str(error)))
    if extended is not None and not extended.granted:
        if pen.signals_seen != seen:
            # What was heard meanwhile may be the room it needs, or a cancel: parked, nobody would tell it again.
            return None
        until = expiry(hands, hold)
        return worst_case.when_refused(job, request, extended, worst_usd=worst_usd, prefix=prefix, expires_at=until)
    attempt = {"step": action.step, "attempt": action.attempt, "attempt_id": request.attempt_id}
    asked = pen.note(
        e.ModelRequested,
        ids.model_span(job.tenant, job.job_id, action.step, action.attempt),
        **attempt,
        provider=request.card.provider,
        model=request.card.model,
        **compared(job, request, prefix, hold.prints),
        worst_usd=worst_usd,
        held_usd=extended.held_usd if extended else None,
        room_tokens=request.max_output_tokens if request.max_output_tokens < wanted else None,
    )
    # They stay until the next call, to be compared with it.
    slim(asked)
    slim(asked.trace)
    await pen.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
    return request


def _hear(
    hands: RunServices, hold: HeldJob, request: ModelRequest, passage: _Passage
) -> Coroutine[Any, Any, Finished | Lapse]:
    """Make the call, and note how it ended; what it had streamed before it failed is void."""
    heard = Heard()

    def note(ended: Finished | Lapse) -> None:
        if isinstance(ended, Lapse):
            passage.error = ended.error
            return _note_failed(hold, request, heard, ended)
        reach(Failpoint.EXECUTOR_MODEL_AFTER)
        passage.spoke = True
        _note_finished(hold, request, heard, ended)

    return paid_call.hear(
        hold,
        hands.models.call(hold.pen.job, request, heard, answering=partial(hands.gates.well, request.card.name)),
        request,
        seconds=hold.seconds_left,
        cancelled="the job was cancelled while the model was writing",
        late="the job's time was over before the model had answered",
        note=note,
    )


def _note_finished(hold: HeldJob, request: ModelRequest, heard: Heard, finished: Finished) -> None:
    asked, used = _asked(hold), finished.usage
    hold.pen.note(
        e.ModelCompleted,
        asked.trace,
        **_attempt(asked),
        **paid_call.owed(request, heard, asked, used),
        message=finished.message,
        usage=used or Usage(),
        saved_usd=used and saved(request.card, used, at=asked.at),
        stop_reason=finished.stop_reason,
        duration_ms=round(heard.ms, 3),
        first_token_ms=heard.first_token_ms and round(heard.first_token_ms, 3),
        notes=finished.notes,
    )


def _note_failed(hold: HeldJob, request: ModelRequest, heard: Heard, lapse: Lapse) -> None:
    asked = _asked(hold)
    hold.pen.note(
        e.ModelFailed,
        asked.trace,
        **_attempt(asked),
        **paid_call.lapsed(request, heard, asked, lapse),
        retryable=lapse.retryable,
        retracted_chars=heard.chars,
        after_s=lapse.error.after_s if lapse.error else None,
    )


def note_lost(hold: HeldJob, asked: e.ModelRequested) -> None:
    """The holder before was killed in a call: what it had streamed is void, and what it cost nobody knows."""
    hold.pen.note(
        e.ModelFailed,
        asked.trace,
        **_attempt(asked),
        error=Failure(code=e.LOST, message="its executor was gone before the model had answered"),
        retryable=True,
        unsettled=worst_case.unseen(asked.worst_usd),
    )


def reroute(hold: HeldJob, action: Reroute) -> None:
    """Let another model go on from here."""
    metrics.jobs_rerouted.labels(action.cause).inc()
    hold.pen.note(e.JobRerouted, route=action.route, cause=action.cause)
    if action.note is not None:
        correct(hold, Correct(action.note))


def correct(hold: HeldJob, action: Correct) -> None:
    """Tell the model what was wrong; it stays in the history."""
    hold.pen.note(e.ContextInjected, note=NoteMessage(label="CORRECTION", text=action.text))


def _asked(hold: HeldJob) -> e.ModelRequested:
    asked = hold.pen.job.model_open
    assert asked is not None
    return asked


def _attempt(asked: e.ModelRequested) -> dict[str, Any]:
    return {"step": asked.step, "attempt": asked.attempt, "attempt_id": asked.attempt_id}
