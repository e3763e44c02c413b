"""A job's first record: what was asked for, by whom, and what was decided; pure but for the time it is given."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

from pydantic_core import from_json

from wayline.chassis import Delivery
from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.agents import Agent
from wayline.contracts.budgets import OWN
from wayline.contracts.chat import TextPart
from wayline.contracts.errors import InvalidMessage, Reject
from wayline.contracts.events import (
    Event,
    JobCancelled,
    JobCompleted,
    JobFailed,
    JobParked,
    JobRouted,
    JobSubmitted,
    SpanRef,
    StartableAgent,
)
from wayline.contracts.jobs import (
    REPLY_TO_MAX,
    SECONDS_MAX,
    TURN,
    Failure,
    FiredBy,
    JobOptions,
    Route,
    StartChild,
    SubmitJob,
    Turn,
    Waiting,
    WhenBusy,
    may_reply_to,
)
from wayline.contracts.money import dollars
from wayline.routing import Decision, RoutingInput, choose_limits
from wayline.routing.rules import DEFAULT_CAP, shown

AGENT_MAX = 64
"""Characters of an agent's name."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a job asks for that admitting it depends on."""

    job_id: str
    agent: str
    user_id: str | None = None
    budget_usd: Decimal | None = None
    session_id: str | None = None
    when_busy: WhenBusy = "wait"
    """What it does while an earlier job of its session has not ended."""
    accepted: tuple[int, int] | None = None
    """When the bus took its submission, and as which message: a user's newest run is the one accepted last. None: it is
    no run of a user's own."""

    @classmethod
    def of(cls, job: SubmitJob, job_id: str, delivery: Delivery | None = None) -> Wish:
        """Return what a job asks for; one that only shows its route takes no turn in its session.

        `delivery`: of its submission.
        """
        options = job.options
        return cls(
            job_id,
            job.agent,
            job.user_id,
            options.budget_usd,
            session_id=None if options.dry_run else job.session_id,
            when_busy=options.when_busy,
            accepted=(delivery.stored_ns, delivery.sequence)
            if delivery and job.user_id and not options.dry_run
            else None,
        )


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who answers a job, and what it may spend."""

    agent: Agent
    cap_usd: Decimal
    """Its own budget."""
    cap_set: bool = False
    """Somebody chose it: it is not the built-in default."""
    left_usd: Decimal | None = None
    """What the tightest hard budget of the tenant has left; None: none counts this job."""
    tightest: str = ""
    turn: Turn | None = None
    """Its place in its session."""
    shares_cap: bool = False
    """Its budget is what is left of those of the jobs above it."""
    open_job: str | None = None
    """A job of its session that had not ended, as far as the tables knew: the first one."""

    @property
    def priced_only(self) -> bool:
        """Return whether a budget that somebody set forbids calls whose price is unknown."""
        return self.cap_set or self.left_usd is not None

    @property
    def bound_usd(self) -> Decimal | None:
        """Return what somebody's budgets leave for the job, those for each job included: its route must keep to it."""
        return min(
            (usd for usd in (self.left_usd, self.cap_usd if self.cap_set else None) if usd is not None), default=None
        )

    @property
    def used_up(self) -> str:
        """Return the budget that has nothing left for the job."""
        if self.left_usd is not None and self.left_usd <= 0:
            return self.tightest
        return OWN if self.cap_usd <= 0 else ""

    def held_usd(self, route: Route) -> Decimal | None:
        """Return what is held at once: nothing yet. None: no call has to ask, because no limit counts it."""
        return None if route.estimated_cost_usd is None and not self.priced_only else Decimal(0)


def job_id_of(asked: str | None, delivery: Delivery) -> str:
    """Return the body's id, else the message's own, else one derived from its place in the stream: the same each time.

    Raises InvalidMessage when the body and the header name different jobs.
    """
    named = delivery.headers.get(h.MSG_ID)
    if asked and named and ids.job_id_from(named) != asked:
        raise InvalidMessage(
            schema=SubmitJob.schema_id(), reason=f"{h.MSG_ID} is {named!r} but job_id in the body is {asked!r}"
        )
    if asked:
        return asked
    if named:
        return ids.job_id_from(named)
    return f"job_{sha256(f'{delivery.sequence}/{delivery.stored_ns}'.encode()).hexdigest()[:20]}"


def require_text(job: SubmitJob) -> None:
    """Refuse names that no table takes with InvalidMessage: looking one up would fail as if we were broken."""
    for name in ("agent", "session_id", "user_id"):
        if "\0" in (getattr(job, name) or ""):
            raise InvalidMessage(schema=SubmitJob.schema_id(), reason=f"{name} has a NUL character in it")


def reply_to_of(tenant: str, delivery: Delivery) -> str | None:
    """Return where the result goes. Raises InvalidMessage where that is no inbox and no reply of the tenant's own."""
    subject = delivery.headers.get(h.REPLY_TO)
    if subject is not None and not may_reply_to(tenant, subject):
        raise InvalidMessage(
            schema=SubmitJob.schema_id(),
            reason=f"{h.REPLY_TO} is {subject[:REPLY_TO_MAX]!r}; it must begin with _INBOX. or replies.{tenant}. and "
            f"have no white space, wildcard, empty part or more than {REPLY_TO_MAX} characters",
        )
    return subject


def caller_of(delivery: Delivery, tenant: str, job_id: str) -> str | None:
    """Return the caller's own `traceparent`, which becomes a link; a span of the job's own trace is not a caller."""
    handed_on = delivery.headers.get(h.CALLER)
    if handed_on:
        return handed_on
    sender = delivery.headers.get(h.TRACEPARENT)
    ours = sender is not None and sender.split("-")[1:2] == [ids.trace_id(tenant, job_id)]
    return None if ours else sender


def submitted(
    job: SubmitJob,
    job_id: str,
    delivery: Delivery,
    at: datetime,
    *,
    turn: Turn | None = None,
    schedule: FiredBy | None = None,
) -> JobSubmitted:
    """Return a log's first event."""
    subject = delivery.headers.get(h.REPLY_TO)
    return JobSubmitted(
        job_id=job_id,
        seq=1,
        at=at,
        trace=root(job.tenant, job_id),
        tenant=job.tenant,
        job=job,
        content_hash=job.content_hash(),
        reply_to=subject if subject and may_reply_to(job.tenant, subject) else None,
        caller=caller_of(delivery, job.tenant, job_id),
        turn=turn,
        schedule=schedule,
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
    )


def voided(first: JobSubmitted, reason: str) -> list[Event]:
    """Return the whole log of a job that was stopped before it began."""
    ended = JobCancelled(job_id=first.job_id, seq=2, at=first.at, trace=first.trace, reason=reason, by="parent")
    return [first, ended]


def without_input(first: JobSubmitted) -> JobSubmitted:
    """Return the first event of a job that is refused for the room it would take; its hash is still the whole job's."""
    return first.model_copy(update={"job": first.job.model_copy(update={"input": ""})})


def unknown_agent(name: str) -> Reject:
    """Return the refusal of a job whose agent there is not."""
    return Reject(f"no agent {name!r}: save it first, or use one of GET /v1/agents", code="unknown_agent", status=404)


def turnless(job: SubmitJob, admitted: Admitted) -> Failure | None:
    """Return why a job of a session got no turn; None: it has one, or is of no session."""
    if job.session_id is None or job.options.dry_run or admitted.turn is not None:
        return None
    if job.options.when_busy == "refuse":
        reason = f"session {job.session_id!r} is busy with job {admitted.open_job!r}"
        return Failure(code="session_busy", message=f"{reason}, and options.when_busy is 'refuse'")
    reason = (
        f"too many jobs of session {job.session_id!r} wait for their turn: wait until some have ended, or cancel them"
    )
    return Failure(code="session_full", message=reason)


def unaffordable(job: SubmitJob, decision: Decision, admitted: Admitted) -> Failure | None:
    """Return why a job cannot be paid for; one that would rather wait than end is let in, and parks."""
    route, call_usd = decision.route, decision.first_call_usd
    if route.estimated_cost_usd is None and admitted.priced_only:
        budget = f"budget {admitted.tightest!r}" if admitted.tightest else "the job's own budget"
        reason = f"nobody knows what {route.name} costs, and {budget} is a hard limit: use a model with a price"
        return Failure(code="price_unknown", message=reason)
    if route.estimated_cost_usd == 0 or job.options.at_cap == "park":
        return None
    if admitted.used_up == OWN:
        reason = f"the job may spend {dollars(admitted.cap_usd)} ({_whose(job, admitted)}: {_remedy(job, admitted)})"
        return Failure(code="budget_exhausted", message=reason)
    if admitted.used_up:
        reason = f"budget {admitted.used_up!r} has nothing left: raise it, or submit the job when it begins anew"
        return Failure(code="budget_exhausted", message=reason)
    if call_usd is not None and call_usd > admitted.cap_usd:
        reason = (
            f"one call of {route.name} can cost {shown(call_usd)}, and the job may spend {dollars(admitted.cap_usd)} "
            f"({_whose(job, admitted)}): give it a larger options.budget_usd or a smaller options.max_output_tokens"
        )
        return Failure(code="budget_too_small", message=reason)
    return None


def _whose(job: SubmitJob, admitted: Admitted) -> str:
    """Return who says what a job may spend."""
    if admitted.shares_cap:
        return "what is left for the job that started it"
    if job.options.budget_usd is not None:
        return "its own options.budget_usd"
    if admitted.agent.config.max_cost_usd == admitted.cap_usd:
        return "max_cost_usd of its agent or of the tenant's settings"
    return "a budget for each job" if admitted.cap_set else DEFAULT_CAP


def _remedy(job: SubmitJob, admitted: Admitted) -> str:
    """Return what lets it spend more."""
    if admitted.shares_cap:
        return "raise the budget of that job"
    if job.options.budget_usd is not None:
        return "give it a larger one"
    return ("raise it, or " if admitted.cap_set else "") + "give it an options.budget_usd"


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
    limits = choose_limits(first.job.options, admitted.agent.config, steps_level=inputs.steps_level)
    limits = limits.model_copy(update={"max_seconds": min(limits.max_seconds, seconds_max)})
    return JobRouted(
        job_id=first.job_id,
        seq=2,
        at=first.at,
        trace=first.trace,
        agent=admitted.agent.name,
        agent_version=admitted.agent.version,
        config=admitted.agent.config,
        route=decision.route,
        limits=limits.model_copy(update={"budget_usd": admitted.cap_usd}),
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


def planned(first: JobSubmitted, decided: JobRouted, refusal: Failure | None) -> list[Event]:
    """Return the whole log of a dry run: what would happen, and that nothing did."""
    reason = f"dry run; the job would be refused: {refusal.message}" if refusal else "dry run"
    done = JobCompleted(
        job_id=first.job_id, seq=3, at=first.at, trace=first.trace, answer="", partial=True, reason=reason
    )
    return [first, decided, done]


@dataclass(frozen=True, slots=True)
class Salvaged:
    """As much of a refused submission as can be read."""

    job: SubmitJob
    job_id: str
    has_log: bool
    """Whether it gets a log: what is no JSON object is only answered."""


def salvaged(delivery: Delivery) -> Salvaged:
    """Read what can be read of a refused submission.

    One that can be read whole is kept whole, so that it is the same job when it comes again.
    """
    with suppress(InvalidMessage):
        job = SubmitJob.from_wire(delivery.body, delivery.subject)
        return Salvaged(job, job.job_id or job_id_of(None, delivery), has_log=True)
    tenant = SubmitJob.address(delivery.subject)["tenant"]
    value: Any = None
    with suppress(ValueError):
        value = from_json(delivery.body)
    fields: dict[str, Any] = value if isinstance(value, dict) else {}
    agent, text = fields.get("agent"), fields.get("input")
    job = SubmitJob(
        tenant=tenant,
        agent=agent if isinstance(agent, str) and 0 < len(agent) <= AGENT_MAX else "unreadable",
        input=text if isinstance(text, str) else "",
    )
    asked = fields.get("job_id")
    own = asked if isinstance(asked, str) and ids.job_id_from(asked) == asked else None
    return Salvaged(job, own or job_id_of(None, delivery), has_log=isinstance(value, dict))


def root(tenant: str, job_id: str) -> SpanRef:
    """Return the span that events of the job as a whole stand on."""
    return SpanRef(trace_id=ids.trace_id(tenant, job_id), span_id=ids.job_span(tenant, job_id))
