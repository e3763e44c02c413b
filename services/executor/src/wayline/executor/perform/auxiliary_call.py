"""Makes priced calls beside the conversation: the money is held, the intent is written down, and nobody tries twice.

A job can do without their answers: where a call may not be made, or brings nothing, the log says why, and it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from wayline.chassis import Failpoint, reach
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.budgets import Extended
from wayline.contracts.chat import NoteMessage
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import Failure
from wayline.contracts.money import Usage
from wayline.executor.adapters.model_providers import CallProgress
from wayline.executor.adapters.provider_gates import GatePass
from wayline.executor.decide import classification, compaction, result_summary, worst_case
from wayline.executor.decide.actions import Classify, Compact, Summarize
from wayline.executor.decide.helper_model import too_dear
from wayline.executor.decide.retry_or_reroute import SHUT
from wayline.executor.hold.held_job import Cancelled
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.perform import paid_call
from wayline.executor.perform.earlier_results import read_result
from wayline.executor.perform.job_run import JobRun
from wayline.executor.perform.paid_call import FailedCall
from wayline.executor.prompt.assemble import PromptHashes
from wayline.journal import Job
from wayline.llm import Finished, ModelRequest


@dataclass(frozen=True, slots=True)
class AuxiliaryCall:
    """A question beside the conversation."""

    purpose: e.Purpose
    request: ModelRequest
    seconds_max: float
    about: str | None = None
    """The tool call that it is about, as `step/call`."""
    share_of_budget: bool = False
    """Whether it is not made where it could take much of what is left of the job's own budget."""
    waits: bool = False
    """Whether the router is to wake the job once a budget that refuses it has room."""


@dataclass(frozen=True, slots=True)
class NotMade:
    """Why a call was not made: nothing of it is in the log yet."""

    why: str
    code: str = "not_made"
    waits_for: Extended | None = None
    """The budget without room, where the job would wait for it."""


Answered = Callable[[Finished], Sequence[Draft]]
"""What an answer means, for the record that says that it was paid for: nothing may come between them."""


async def classify(run: JobRun, action: Classify) -> Sequence[Draft]:
    """Ask for the job's type of task, and return what came of it."""

    def answered(finished: Finished) -> Sequence[Draft]:
        text = finished.message.text
        label = classification.label(text, action.labels)
        why = "" if label else classification.unreadable(text)
        return (draft(e.TaskClassified, task_type=label, reason=why),)

    request = classification.question(run.writer.job, action, attempt_id=next_aux_id(run.writer.job))
    ended = await ask_aside(run, AuxiliaryCall("classification", request, classification.SECONDS_MAX), answered)
    if isinstance(ended, NotMade):
        return (draft(e.TaskClassified, task_type=None, reason=ended.why),)
    return ended


async def compact(run: JobRun, action: Compact) -> Sequence[Draft]:
    """Ask for a summary and put it in the place of what it is about; without one, the conversation stays as it is."""

    def answered(finished: Finished) -> Sequence[Draft]:
        if finished.stop_reason != "end" or not finished.message.text.strip():
            return ()
        return (
            draft(
                e.ContextCompacted,
                note=_summary(run.writer.job, finished.message.text),
                kept=action.kept,
            ),
        )

    if action.card is None:
        text = compaction.outline(run.writer.job, action.kept)
        return (draft(e.ContextCompacted, note=_summary(run.writer.job, text), kept=action.kept),)
    request = compaction.question(run.writer.job, action, attempt_id=next_aux_id(run.writer.job))
    call = AuxiliaryCall("compaction", request, compaction.SECONDS_MAX)
    ended = await ask_aside(run, call, answered)
    return (not_made(run.writer.job, call, ended),) if isinstance(ended, NotMade) else ended


def _summary(job: Job, text: str) -> NoteMessage:
    return compaction.note(text, job.working_context, tainted=job.tools.tainted_by is not None)


async def summarize(run: JobRun, action: Summarize) -> Sequence[Draft]:
    """Ask for a summary of a long tool result; without one, the model is shown its beginning and its end."""
    # It is read from the log, and a kill while the helper writes must not lose it.
    await run.writer.append(Failpoint.EXECUTOR_RESULT_BEFORE, Failpoint.EXECUTOR_RESULT_AFTER)
    job = run.writer.job
    step = job.model.step
    result = await read_result(run.writer, step, action.call)
    whole = result.text if result is not None else ""

    def answered(finished: Finished) -> Sequence[Draft]:
        if finished.stop_reason != "end" or not finished.message.text.strip():
            return ()
        content = result_summary.shown(run.writer.job, action.call, finished.message.text, whole=whole)
        return (draft(e.ResultSummarized, step=step, call=action.call, content=content),)

    request = result_summary.question(job, action, whole, attempt_id=next_aux_id(job))
    about = f"{step}/{action.call}"
    call = AuxiliaryCall("summary", request, result_summary.SECONDS_MAX, about=about, share_of_budget=True)
    ended = await ask_aside(run, call, answered)
    return (not_made(run.writer.job, call, ended),) if isinstance(ended, NotMade) else ended


def not_made(job: Job, call: AuxiliaryCall, refused: NotMade) -> Draft:
    """Return the end of a call that was not made."""
    error = Failure(code=refused.code, message=refused.why)
    return draft(e.AuxiliaryFailed, _span(job, call.request.attempt_id), **_named(call), error=error)


def next_aux_id(job: Job) -> str:
    """Return the id of the job's next auxiliary call."""
    return ids.aux_id(job.tenant, job.job_id, job.model.step, job.model.aux_calls + 1)


async def ask_aside(run: JobRun, call: AuxiliaryCall, answered: Answered) -> Sequence[Draft] | NotMade:
    """Make a call if it may be made now and can be paid: there is no waiting for it, and no second try."""
    name = call.request.card.name
    shut = await run.services.gates.enter(name)
    if shut is not None:
        return NotMade(f"{name} {shut.why}", code=SHUT)
    gate_pass = GatePass(name)
    run.passed = gate_pass
    prompt_tokens = worst_case.most_tokens(call.request, PromptHashes().segments(call.request))
    worst_usd = worst_case.worst_usd(call.request, prompt_tokens, at=run.writer.job.at)
    if call.share_of_budget and too_dear(worst_usd, worst_case.own_left(run.writer.job)):
        return NotMade("it could take too much of what is left of the job's budget")
    held_usd = await _fund(run, call, worst_usd)
    if isinstance(held_usd, NotMade):
        return held_usd
    await _intend(run, call, worst_usd=worst_usd, held_usd=held_usd)
    return await _call(run, call, gate_pass, answered)


async def _fund(run: JobRun, call: AuxiliaryCall, worst_usd: Decimal | None) -> Decimal | NotMade | None:
    """Return what is held for the job now, where it had to be raised; or why the call cannot be paid."""
    need = worst_case.shortfall(run.writer.job, worst_usd)
    try:
        extended = await paid_call.fund(run, call.request, need, waits=call.waits)
    except Cancelled:
        return NotMade("the job was cancelled")
    except Reject as error:
        return NotMade(str(error))
    if extended is None or extended.granted:
        return extended and extended.held_usd
    if worst_usd is None or run.writer.job.money.spent_usd is None:
        return NotMade(f"the price of {call.request.card.name} is unknown")
    why = worst_case.no_room(run.writer.job, extended, worst_usd)
    return NotMade(why, waits_for=extended if call.waits else None)


async def _intend(run: JobRun, call: AuxiliaryCall, *, worst_usd: Decimal | None, held_usd: Decimal | None) -> None:
    card = call.request.card
    run.writer.note(
        e.AuxiliaryRequested,
        _span(run.writer.job, call.request.attempt_id),
        **_named(call),
        provider=card.provider,
        model=card.model,
        worst_usd=worst_usd,
        held_usd=held_usd,
    )
    await run.writer.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)


async def _call(run: JobRun, call: AuxiliaryCall, gate_pass: GatePass, answered: Answered) -> Sequence[Draft]:
    """Make the call, and return how it ended; what an answer means is in the same record."""
    name, seconds = call.request.card.name, min(call.seconds_max, run.held.seconds_left)
    progress, asked = CallProgress(), run.writer.job.model.aux_open
    assert asked is not None

    def failed(failed_call: FailedCall) -> Draft:
        failed_fields = paid_call.failed_fields(call.request, progress, asked, failed_call)
        return draft(e.AuxiliaryFailed, _span(run.writer.job, asked.attempt_id), **_named(call), **failed_fields)

    ended = await paid_call.hear(
        run,
        run.services.models.ask_aside(call.request, progress, answering=partial(run.services.gates.well, name)),
        call.request,
        seconds=seconds,
        cancelled=f"the job was cancelled during its {call.purpose}",
        late=f"{name} had not answered within {seconds:g} s",
        failed=failed,
    )
    if isinstance(ended, FailedCall):
        gate_pass.error = ended.error
        return (failed(ended),)
    gate_pass.spoke = True
    reach(Failpoint.EXECUTOR_AUX_AFTER)
    return (_completed(run.writer.job, call, progress, asked, ended), *answered(ended))


def _completed(
    job: Job, call: AuxiliaryCall, progress: CallProgress, asked: e.AuxiliaryRequested, finished: Finished
) -> Draft:
    card, used = call.request.card, finished.usage
    return draft(
        e.AuxiliaryCompleted,
        _span(job, asked.attempt_id),
        **_named(call),
        **paid_call.cost_fields(call.request, progress, asked, used),
        provider=card.provider,
        model=card.model,
        usage=used or Usage(),
        duration_ms=round(progress.ms, 3),
    )


def lost(job: Job, asked: e.AuxiliaryRequested) -> Draft:
    """Return the end of a call whose holder was killed: nobody knows what it cost, and it is not made again."""
    return draft(
        e.AuxiliaryFailed,
        _span(job, asked.attempt_id),
        purpose=asked.purpose,
        about=asked.about,
        attempt_id=asked.attempt_id,
        error=Failure(code=e.LOST, message="its executor was gone before the model had answered"),
        unsettled=worst_case.unseen(asked.worst_usd),
    )


def _named(call: AuxiliaryCall) -> dict[str, Any]:
    return {"purpose": call.purpose, "about": call.about, "attempt_id": call.request.attempt_id}


def _span(job: Job, attempt_id: str) -> str:
    return ids.aux_span(job.tenant, job.job_id, attempt_id)
