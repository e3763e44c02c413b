"""Makes one model call of the conversation: what may stand in its way, the call, and how it ended."""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal
from functools import partial
from typing import Any, Literal

from wayline.chassis import Failpoint, reach
from wayline.contracts import events as e
from wayline.contracts.base import slim
from wayline.contracts.budgets import Extended
from wayline.contracts.chat import AssistantMessage, NoteMessage
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import Failure
from wayline.contracts.memory import FactsRecalled
from wayline.contracts.money import Usage
from wayline.contracts.tools import ToolDefinition
from wayline.executor.adapters.model_providers import CallProgress
from wayline.executor.adapters.provider_gates import GatePass
from wayline.executor.decide import worst_case
from wayline.executor.decide.accept_answer import CUT_BY_TIME
from wayline.executor.decide.actions import Action, CallModel, Correct, Fail, Reroute
from wayline.executor.decide.prepare_call import PreparedCall, prepare_call
from wayline.executor.decide.retry_or_reroute import when_shut
from wayline.executor.hold.held_job import Cancelled
from wayline.executor.hold.log_writer import Draft, LogWriter, draft
from wayline.executor.perform import paid_call
from wayline.executor.perform.attached_files import load_attachments
from wayline.executor.perform.job_run import JobRun, OtherAction, Outcome
from wayline.executor.perform.paid_call import FailedCall
from wayline.executor.perform.park_or_end import expiry
from wayline.executor.perform.tell_model import note_memory, note_news, recalled
from wayline.journal import Job
from wayline.llm import File, Finished, ModelRequest, saved
from wayline.llm.characters import joined
from wayline.telemetry import metrics

TAKEN = "options.client_tools has names that tools of the agent have: {}"
SPREAD = 0.1
"""A wait is longer by up to this share, so that those who were sent away together do not come back together."""


async def call_model(run: JobRun, action: CallModel) -> Outcome:
    """Write the intent, ask the model, and return what it answered or why it did not.

    Returns what the job needs instead where the call may not be made: that is seen only here, not in the log. Returns
    nothing where a cancel was heard before the intent.
    """
    assert run.writer.job.routing.route is not None
    gate_pass = GatePass(run.writer.job.routing.route.name)
    try:
        request = await _prepare(run, action, gate_pass)
    except Cancelled:
        return ()
    if request is None:
        return ()
    return await _call(run, request, gate_pass) if isinstance(request, ModelRequest) else OtherAction(request)


async def _prepare(run: JobRun, action: CallModel, gate_pass: GatePass) -> ModelRequest | Action | None:
    """Write the intent once nothing stands in the way of the call. Raises Cancelled."""
    tools = await _tools(run)
    if isinstance(tools, Fail):
        return tools
    if action.delay_s:
        await _wait(run, action.delay_s)
    files = await load_attachments(run)
    if isinstance(files, Fail):
        return files
    remembered = await recalled(run)
    instead = await _pass_gate(run, gate_pass)
    return instead or await _intend(run, action, tools, files=files, remembered=remembered)


async def _tools(run: JobRun) -> tuple[ToolDefinition, ...] | Fail:
    job = run.writer.job
    assert job.life.submitted is not None
    tools = run.services.tools.known(job)
    if tools is None:
        # The registry may be away for long: a cancel is heard, and the process's end is not held up.
        tools = await run.held.listening(run.services.tools.offered(job))
    if job.tools.client and (taken := {tool.name for tool in tools} & set(job.tools.client)):
        if job.tools.offered is None:
            return Fail(Failure(code="client_tools_refused", message=TAKEN.format(", ".join(sorted(taken)))))
        # It came later: to the model the name means its caller's.
        tools = tuple(tool for tool in tools if tool.name not in taken)
    required = job.life.submitted.options.required_tools
    # Only before the first call: a server that comes and goes later costs an answer, not the job.
    if not required or job.tools.offered is not None:
        return tools
    missing = set(required) - {tool.name for tool in tools} - set(job.tools.client)
    if not missing:
        return tools
    names = ", ".join(sorted(missing))
    return Fail(Failure(code="missing_tools", message=f"the job requires tools its agent does not have: {names}"))


async def _wait(run: JobRun, seconds: float) -> None:
    await run.held.listening(asyncio.sleep(seconds * (1 + SPREAD * random.random())))


async def _pass_gate(run: JobRun, gate_pass: GatePass) -> Action | None:
    """Wait while the model may not be called, or say what to do instead of waiting."""
    waited_s = 0.0
    while (shut := await run.services.gates.enter(gate_pass.name)) is not None:
        instead = when_shut(run.writer.job, wait_s=shut.wait_s, waited_s=waited_s, why=shut.why)
        if instead is not None:
            return instead
        await _wait(run, shut.wait_s)
        waited_s += shut.wait_s
    run.passed = gate_pass
    return None


async def _intend(
    run: JobRun,
    action: CallModel,
    listed: tuple[ToolDefinition, ...],
    *,
    files: dict[str, File],
    remembered: FactsRecalled | None,
) -> ModelRequest | Action | None:
    """Append what will be asked, with the money for it held; or return what the job needs instead, None: to look again.

    Raises Cancelled.
    """
    note_memory(run.writer, remembered)
    note_news(run.writer, listed, run.services.notes)
    job, seen = run.writer.job, run.writer.signals_seen
    call = prepare_call(job, action, run.hashes, listed=listed, files=files, absent=run.services.tools.absent(job))
    try:
        extended = await paid_call.fund(run, call.request, call.need, waits=worst_case.would_wait(job))
    except Reject as error:
        return Fail(Failure(code=error.code, message=str(error)))
    if run.writer.job.conversation.steering != job.conversation.steering:
        # Words came meanwhile: the request has to say them.
        return None
    if extended is not None and not extended.granted:
        # What was heard meanwhile may be the room it needs, or a cancel: parked, nobody would tell it again.
        return _when_refused(run, job, call, extended) if run.writer.signals_seen == seen else None
    note_intent(run.writer, call, held_usd=extended.held_usd if extended else None)
    await run.writer.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
    if run.writer.job.session.steered_by:
        await run.services.follow_up.steered(run.writer.job, run.held.steered)
    return call.request


def note_intent(writer: LogWriter, call: PreparedCall, *, held_usd: Decimal | None = None) -> None:
    """Note what will be asked, and count a prompt that its provider's cache cannot continue."""
    if call.cache_break:
        metrics.cache_breaks.labels(call.cache_break).inc()
    asked = writer.note(e.ModelRequested, call.span_id, **call.intent, held_usd=held_usd)
    # They stay until the next call, to be compared with it.
    slim(asked)
    slim(asked.trace)


def _when_refused(run: JobRun, job: Job, call: PreparedCall, refused: Extended) -> Action:
    return worst_case.when_refused(
        job, call.request, refused, worst_usd=call.worst_usd, prefix=call.prefix, expires_at=expiry(run)
    )


async def _call(run: JobRun, request: ModelRequest, gate_pass: GatePass) -> tuple[Draft, ...]:
    """Make the call, and return how it ended; what it had streamed before it failed is void."""
    progress, asked = CallProgress(), run.writer.job.model.open
    assert asked is not None
    answering = partial(run.services.gates.well, request.card.name)

    def failed(failed_call: FailedCall) -> Draft:
        return _failed(request, progress, asked, failed_call)

    ended = await paid_call.hear(
        run,
        run.services.models.call(run.writer.job, request, progress, answering=answering),
        request,
        seconds=run.held.seconds_left,
        cancelled="the job was cancelled while the model was writing",
        late="the job's time was over before the model had answered",
        failed=failed,
    )
    if isinstance(ended, FailedCall):
        gate_pass.error = ended.error
        written = joined("".join(progress.pieces))
        if ended.failure.code != paid_call.TIME_LIMIT or not written.strip():
            return (failed(ended),)
        # What was written until then is paid for, and most of an answer is one.
        ended = Finished(AssistantMessage(text=written), None, CUT_BY_TIME)
    gate_pass.spoke = True
    reach(Failpoint.EXECUTOR_MODEL_AFTER)
    return (_completed(request, progress, asked, ended),)


def _completed(request: ModelRequest, progress: CallProgress, asked: e.ModelRequested, finished: Finished) -> Draft:
    used = finished.usage
    return draft(
        e.ModelCompleted,
        asked.trace,
        **_attempt(asked),
        **paid_call.cost_fields(request, progress, asked, used),
        message=finished.message,
        usage=used or Usage(),
        saved_usd=used and saved(request.card, used, at=asked.at),
        stop_reason=finished.stop_reason,
        refusal=finished.refusal or None,
        duration_ms=round(progress.ms, 3),
        first_token_ms=progress.first_token_ms and round(progress.first_token_ms, 3),
        notes=finished.notes,
    )


def _failed(request: ModelRequest, progress: CallProgress, asked: e.ModelRequested, failed_call: FailedCall) -> Draft:
    return draft(
        e.ModelFailed,
        asked.trace,
        **_attempt(asked),
        **paid_call.failed_fields(request, progress, asked, failed_call),
        retryable=failed_call.retryable,
        retracted_chars=progress.chars,
        after_s=failed_call.error.after_s if failed_call.error else None,
    )


def lost(asked: e.ModelRequested) -> Draft:
    """Return the end of a call whose holder was killed: what it had streamed is void, and nobody knows what it cost."""
    return draft(
        e.ModelFailed,
        asked.trace,
        **_attempt(asked),
        error=Failure(code=e.LOST, message="its executor was gone before the model had answered"),
        retryable=True,
        unsettled=worst_case.unseen(asked.worst_usd),
    )


async def reroute(_: JobRun, action: Reroute) -> tuple[Draft, ...]:
    """Let another model go on from here."""
    metrics.jobs_rerouted.labels(action.cause).inc()
    rerouted = draft(e.JobRerouted, route=action.route, cause=action.cause)
    return (rerouted,) if action.note is None else (rerouted, _correction(action.note))


async def correct(_: JobRun, action: Correct) -> tuple[Draft, ...]:
    """Tell the model what was wrong; it stays in the history."""
    return (_correction(action.text, action.about),)


def _correction(text: str, about: Literal["required_tools"] | None = None) -> Draft:
    # It repeats what was wrong with the answer, and with that whatever the answer had repeated.
    return draft(e.ContextInjected, note=NoteMessage(label="CORRECTION", text=text, quoted=True), about=about)


def _attempt(asked: e.ModelRequested) -> dict[str, Any]:
    return {"step": asked.step, "attempt": asked.attempt, "attempt_id": asked.attempt_id}
