"""The events of a job's first record. Pure but for the time that they are given."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from wayline.chassis import Delivery
from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.chat import TextPart
from wayline.contracts.events import (
    ClientToolsGiven,
    Event,
    ExtractionAsked,
    JobCancelled,
    JobCompleted,
    JobFailed,
    JobParked,
    JobRouted,
    JobSubmitted,
    SpanRef,
    StartableAgent,
    SummaryAsked,
)
from wayline.contracts.jobs import (
    SECONDS_MAX,
    TURN,
    Failure,
    FiredBy,
    JobOptions,
    StartChild,
    SubmitJob,
    SubmittedBy,
    Turn,
    Waiting,
    may_reply_to,
)
from wayline.router.admission.conditions import Admitted
from wayline.router.admission.read_submission import caller_of, submitted_by
from wayline.routing import Decision, RoutingInput, choose_limits


def submitted(
    job: SubmitJob,
    job_id: str,
    delivery: Delivery,
    at: datetime,
    *,
    turn: Turn | None = None,
    schedule: FiredBy | None = None,
    content_hash: str | None = None,
) -> JobSubmitted:
    """Return a log's first event; `content_hash` is the job's, where the caller has it."""
    subject = delivery.headers.get(h.REPLY_TO)
    return JobSubmitted(
        job_id=job_id,
        seq=1,
        at=at,
        trace=root(job.tenant, job_id),
        tenant=job.tenant,
        job=job,
        content_hash=content_hash or job.content_hash(),
        reply_to=subject if subject and may_reply_to(job.tenant, subject) else None,
        caller=caller_of(delivery, job.tenant, job_id),
        turn=turn,
        schedule=schedule,
        submitted_by=submitted_by(delivery)
        if schedule is None
        else SubmittedBy(how="schedule", name=schedule.schedule),
    )


def child_job(request: StartChild) -> SubmitJob:
    """Return what is asked of a job that another one starts."""
    options = JobOptions(lane=request.lane)
    return SubmitJob(
        tenant=request.tenant, agent=request.agent, input=request.input, user_id=request.user_id, options=options
    )


def child_submitted(request: StartChild, job: SubmitJob, job_id: str, at: datetime) -> JobSubmitted:
    """Return the first event of such a job."""
    return JobSubmitted(
        job_id=job_id,
        seq=1,
        at=at,
        trace=root(job.tenant, job_id),
        tenant=job.tenant,
        job=job,
        content_hash=job.content_hash(),
        parent=request.parent,
        submitted_by=SubmittedBy(how="parent", name=request.parent.job_id),
    )


def routed(
    first: JobSubmitted,
    admitted: Admitted,
    inputs: RoutingInput,
    decision: Decision,
    *,
    agents: tuple[StartableAgent, ...] = (),
    seconds_max: float = SECONDS_MAX,
) -> JobRouted:
    """Return what was decided, with all that a backtest needs to decide it again."""
    limits = choose_limits(
        inputs.job.options, inputs.config, steps_level=inputs.steps_level, context_level=inputs.context_level
    )
    bounds = {"max_seconds": min(limits.max_seconds, seconds_max), "budget_usd": admitted.cap_usd}
    return JobRouted(
        job_id=first.job_id,
        seq=2,
        at=first.at,
        trace=first.trace,
        agent=admitted.agent.name,
        agent_version=admitted.agent.version,
        agent_label=admitted.label,
        config=inputs.config,
        route=decision.route,
        limits=limits.model_copy(update=bounds),
        candidates=decision.candidates,
        policy=decision.policy,
        left_usd=inputs.left_usd,
        held_usd=admitted.held_usd(decision.route),
        warm=inputs.warm,
        attachments=inputs.attachments,
        agents=agents,
        away=decision.away,
    )


def parked_for_turn(first: JobSubmitted, decided: JobRouted, open_job: str) -> list[Event]:
    """Return the first record of a job whose turn has not come: it waits for the end of the jobs before it.

    `open_job` is the first of them, and takes its words where it steers; images and files wait for a turn of their own.
    """
    job = first.job
    steers = job.options.when_busy == "steer" and all(isinstance(part, TextPart) for part in job.parts())
    after = first.turn.after if first.turn else None
    waiting = Waiting(why="turn", wait_id=TURN, after=after, into=open_job if steers else None)
    parked = JobParked(job_id=first.job_id, seq=3, at=first.at, trace=first.trace, waiting=waiting, signals_seen=0)
    return [first, decided, parked]


def with_what_it_needs(record: list[Event]) -> list[Event]:
    """Return a first record that also says what an older executor cannot do for the job, so that it leaves it.

    Older versions pass over fields that they do not know, and over no event.
    """
    first, decided, *after = record
    assert isinstance(first, JobSubmitted)
    about: dict[str, Any] = {"job_id": first.job_id, "at": first.at, "trace": first.trace}
    needs = list[Event]()
    if first.job.options.client_tools:
        names = tuple(tool.name for tool in first.job.options.client_tools)
        needs.append(ClientToolsGiven(**about, seq=3, tools=names))
    if first.job.extract is not None:
        needs.append(ExtractionAsked(**about, seq=3 + len(needs), jobs=first.job.extract.jobs))
    if first.job.summarize is not None:
        needs.append(SummaryAsked(**about, seq=3 + len(needs), dry_run=first.job.summarize.dry_run))
    return [first, decided, *needs, *(event.model_copy(update={"seq": event.seq + len(needs)}) for event in after)]


def planned(first: JobSubmitted, decided: JobRouted, refusal: Failure | None) -> list[Event]:
    """Return the whole log of a dry run: what would happen, and that nothing did."""
    reason = f"dry run; the job would be refused: {refusal.message}" if refusal else "dry run"
    done = JobCompleted(
        job_id=first.job_id, seq=3, at=first.at, trace=first.trace, answer="", partial=True, reason=reason
    )
    return [first, decided, done]


def refused(first: JobSubmitted, error: Failure) -> list[Event]:
    """Return the whole log of a job that is refused: it was asked for, and this is why it will not run."""
    return [first, JobFailed(job_id=first.job_id, seq=2, at=first.at, trace=first.trace, error=error)]


def lost(
    tenant: str, job_id: str, *, agent: str, session_id: str, turn: Turn, at: datetime
) -> tuple[JobSubmitted, JobFailed]:
    """Return the whole log of a job of a session that was accepted and whose submission is gone."""
    job = SubmitJob(tenant=tenant, agent=agent, input="", session_id=session_id)
    first = JobSubmitted(
        job_id=job_id,
        seq=1,
        at=at,
        trace=root(tenant, job_id),
        tenant=tenant,
        job=job,
        content_hash=job.content_hash(),
        turn=turn,
    )
    message = "its submission was lost before it began: submit it again under another id"
    error = Failure(code="submission_lost", message=message)
    return first, JobFailed(job_id=job_id, seq=2, at=at, trace=first.trace, error=error)


def voided(first: JobSubmitted, reason: str) -> list[Event]:
    """Return the whole log of a job that was stopped before it began."""
    ended = JobCancelled(job_id=first.job_id, seq=2, at=first.at, trace=first.trace, reason=reason, by="parent")
    return [first, ended]


def without_input(first: JobSubmitted) -> JobSubmitted:
    """Return the first event of a job that is refused for the room it would take; its hash is still the whole job's."""
    return first.model_copy(update={"job": first.job.model_copy(update={"input": "", "history": ()})})


def root(tenant: str, job_id: str) -> SpanRef:
    """Return the span that events of the job as a whole stand on."""
    return SpanRef(trace_id=ids.trace_id(tenant, job_id), span_id=ids.job_span(tenant, job_id))
