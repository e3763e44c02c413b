"""Priced calls beside the conversation: the money is held, the intent is written down, and nobody tries twice.

A job can do without their answers: where a call may not be made, or brings nothing, the log says why, and it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from wayline.chassis import Failpoint, reach
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import Failure
from wayline.contracts.money import Usage
from wayline.executor.adapters.model_providers import Heard
from wayline.executor.decide import classification, compaction, worst_case
from wayline.executor.decide.actions import Classify, Compact
from wayline.executor.hold.held_job import Cancelled, HeldJob
from wayline.executor.perform import paid_call
from wayline.executor.perform.paid_call import Lapse
from wayline.executor.perform.services import RunServices
from wayline.executor.prompt.assemble import Prints
from wayline.llm import Finished, ModelError, ModelRequest


@dataclass(frozen=True, slots=True)
class Aside:
    """A question beside the conversation."""

    purpose: e.Purpose
    request: ModelRequest
    seconds_max: float


@dataclass(frozen=True, slots=True)
class Unasked:
    """Why a call was not made: nothing of it is in the log yet."""

    why: str


Answered = Callable[[Finished], None]
"""Notes what an answer means, in the record that says that it was paid for: nothing may come between them."""


async def classify(hands: RunServices, hold: HeldJob, action: Classify) -> None:
    """Ask for the job's type of task, and note what came of it."""

    def answered(finished: Finished) -> None:
        said = finished.message.text
        found = classification.label(said, action.labels)
        why = "" if found else classification.unreadable(said)
        hold.pen.note(e.TaskClassified, task_type=found, reason=why)

    request = classification.question(hold.pen.job, action, attempt_id=next_id(hold))
    unasked = await ask(hands, hold, Aside("classification", request, classification.SECONDS_MAX), answered)
    if unasked is not None:
        hold.pen.note(e.TaskClassified, task_type=None, reason=unasked.why)


async def compact(hands: RunServices, hold: HeldJob, action: Compact) -> None:
    """Ask for a summary and put it in the place of what it is about; without one, the conversation stays as it is."""

    def answered(finished: Finished) -> None:
        if finished.stop_reason == "end" and finished.message.text.strip():
            hold.pen.note(e.ContextCompacted, note=compaction.note(finished.message.text), kept=action.kept)

    request = compaction.question(hold.pen.job, action, attempt_id=next_id(hold))
    aside = Aside("compaction", request, compaction.SECONDS_MAX)
    unasked = await ask(hands, hold, aside, answered)
    if unasked is not None:
        error = Failure(code="not_made", message=unasked.why)
        hold.pen.note(e.AuxiliaryFailed, _span(hold, request.attempt_id), **_named(aside), error=error)


def next_id(hold: HeldJob) -> str:
    """The id of the job's next auxiliary call."""
    job = hold.pen.job
    return ids.aux_id(job.tenant, job.job_id, job.step, job.aux_calls + 1)


async def ask(hands: RunServices, hold: HeldJob, aside: Aside, answered: Answered) -> Unasked | None:
    """Make a call if it may be made now and can be paid: there is no waiting for it, and no second try."""
    name = aside.request.card.name
    shut = await hands.gates.enter(name)
    if shut is not None:
        return Unasked(f"{name} {shut.why}")
    error: ModelError | None = None
    spoke = False
    try:
        prompt_tokens = worst_case.most_tokens(aside.request, Prints().segments(aside.request))
        worst_usd = worst_case.worst_usd(aside.request, prompt_tokens, at=hold.pen.job.at)
        held_usd = await _fund(hands, hold, aside, worst_usd)
        if isinstance(held_usd, Unasked):
            return held_usd
        await _intend(hold, aside, worst_usd=worst_usd, held_usd=held_usd)
        ended = await _hear(hands, hold, aside, answered)
        if isinstance(ended, Lapse):
            error = ended.error
        else:
            spoke = True
        return None
    finally:
        await hands.gates.leave(name, error=error, spoke=spoke)


async def _fund(hands: RunServices, hold: HeldJob, aside: Aside, worst_usd: Decimal | None) -> Decimal | Unasked | None:
    """What is held for the job now, where it had to be raised; or why the call cannot be paid."""
    try:
        extended = await paid_call.fund(hands, hold, aside.request, worst_usd, waits=False)
    except Cancelled:
        return Unasked("the job was cancelled")
    except Reject as error:
        return Unasked(str(error))
    if extended is None or extended.granted:
        return extended and extended.held_usd
    if worst_usd is None or hold.pen.job.spent_usd is None:
        return Unasked(f"nobody has said what {aside.request.card.name} costs")
    return Unasked(worst_case.no_room(hold.pen.job, extended, worst_usd))


async def _intend(hold: HeldJob, aside: Aside, *, worst_usd: Decimal | None, held_usd: Decimal | None) -> None:
    card = aside.request.card
    hold.pen.note(
        e.AuxiliaryRequested,
        _span(hold, aside.request.attempt_id),
        **_named(aside),
        provider=card.provider,
        model=card.model,
        worst_usd=worst_usd,
        held_usd=held_usd,
    )
    await hold.pen.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)


def _hear(hands: RunServices, hold: HeldJob, aside: Aside, answered: Answered) -> Coroutine[Any, Any, Finished | Lapse]:
    """Make the call, and note how it ended; what an answer means is in the same record."""
    name, seconds = aside.request.card.name, min(aside.seconds_max, hold.seconds_left)
    heard = Heard()

    def note(ended: Finished | Lapse) -> None:
        if isinstance(ended, Lapse):
            return _note_failed(hold, aside, heard, ended)
        reach(Failpoint.EXECUTOR_AUX_AFTER)
        _note_completed(hold, aside, heard, ended)
        answered(ended)

    return paid_call.hear(
        hold,
        hands.models.ask_aside(aside.request, heard, answering=partial(hands.gates.well, name)),
        aside.request,
        seconds=seconds,
        cancelled=f"the job was cancelled during its {aside.purpose}",
        late=f"{name} had not answered within {seconds:g} s",
        note=note,
    )


def _note_completed(hold: HeldJob, aside: Aside, heard: Heard, finished: Finished) -> None:
    card, asked, used = aside.request.card, _asked(hold), finished.usage
    hold.pen.note(
        e.AuxiliaryCompleted,
        _span(hold, asked.attempt_id),
        **_named(aside),
        **paid_call.owed(aside.request, heard, asked, used),
        provider=card.provider,
        model=card.model,
        usage=used or Usage(),
        duration_ms=round(heard.ms, 3),
    )


def _note_failed(hold: HeldJob, aside: Aside, heard: Heard, lapse: Lapse) -> None:
    asked = _asked(hold)
    told = paid_call.lapsed(aside.request, heard, asked, lapse)
    hold.pen.note(e.AuxiliaryFailed, _span(hold, asked.attempt_id), **_named(aside), **told)


def note_lost(hold: HeldJob, asked: e.AuxiliaryRequested) -> None:
    """The holder before was killed in a call: what it cost nobody knows, and it is not made again."""
    hold.pen.note(
        e.AuxiliaryFailed,
        _span(hold, asked.attempt_id),
        purpose=asked.purpose,
        attempt_id=asked.attempt_id,
        error=Failure(code=e.LOST, message="its executor was gone before the model had answered"),
        unsettled=worst_case.unseen(asked.worst_usd),
    )


def _asked(hold: HeldJob) -> e.AuxiliaryRequested:
    asked = hold.pen.job.aux_open
    assert asked is not None
    return asked


def _named(aside: Aside) -> dict[str, Any]:
    return {"purpose": aside.purpose, "attempt_id": aside.request.attempt_id}


def _span(hold: HeldJob, attempt_id: str) -> str:
    job = hold.pen.job
    return ids.aux_span(job.tenant, job.job_id, attempt_id)
