"""Whether a job is admitted: what that depends on, what was found, and why a job is refused. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from wayline.chassis import Delivery
from wayline.contracts.agents import Agent, AgentConfig
from wayline.contracts.budgets import OWN
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import (
    Failure,
    Route,
    SubmitJob,
    Turn,
    WhenBusy,
)
from wayline.contracts.money import dollars
from wayline.contracts.tenant_settings import INHERITED
from wayline.llm.structured import arguments_schema_problem, schema_problem
from wayline.router.admission.earlier_turns import EarlierTurn
from wayline.router.admission.version_choice import NO_LOT, lot_of
from wayline.routing import Decision, RoutingInput
from wayline.routing.context_budget import message_problem
from wayline.routing.job_overrides import bounded, narrowed, remembering
from wayline.routing.rules import DEFAULT_CAP, shown


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """The part of a job that its admission depends on."""

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
    sequence: int = 0
    """The place of its submission among all."""
    earlier: tuple[EarlierTurn, ...] = ()
    """Submissions of its session that take their turns before it does."""
    label: str | None = None
    """Of the version that it asks for."""
    lot: float = NO_LOT
    """Where it falls among the shares of labels."""
    conversation: str | None = None
    """The session whose version it goes on with, also where it takes no turn in it."""

    @classmethod
    def of(
        cls,
        job: SubmitJob,
        job_id: str,
        delivery: Delivery | None = None,
        *,
        earlier: tuple[EarlierTurn, ...] = (),
    ) -> AdmissionRequest:
        """Return what a job asks for; one that only shows its route takes no turn in its session.

        `delivery`: of its submission. `earlier`: those of its session that were accepted before it.
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
            if delivery and job.user_id and not options.dry_run and not job.keeps_memory
            else None,
            sequence=delivery.sequence if delivery else 0,
            earlier=earlier,
            # A fork goes on with its origin's version.
            label=None if job.fork is not None else options.agent_label,
            lot=lot_of(job, job_id),
            conversation=job.session_id,
        )


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who answers a job, and what it may spend."""

    agent: Agent
    cap_usd: Decimal
    """Its own budget."""
    cap_set: bool = False
    """It was chosen: it is not the built-in default."""
    left_usd: Decimal | None = None
    """What the tightest hard budget of the tenant has left; None: none counts this job."""
    tightest: str = ""
    turn: Turn | None = None
    """Its place in its session."""
    shares_cap: bool = False
    """Its budget is what is left of those of the jobs above it."""
    label: str | None = None
    """By which the agent's version was chosen."""
    open_job: str | None = None
    """A job of its session that had not ended, as far as the tables knew: the first one."""

    @property
    def priced_only(self) -> bool:
        """Return whether a budget that was set forbids calls whose price is unknown."""
        return self.cap_set or self.left_usd is not None

    @property
    def bound_usd(self) -> Decimal | None:
        """Return what budgets that were set leave for the job, its own included: its route must keep to it."""
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


def unknown_agent(name: str) -> Reject:
    """Return the refusal of a job whose agent there is not."""
    return Reject(f"no agent {name!r}: save it first, or use one of GET /v1/agents", code="unknown_agent", status=404)


def within_agent(job: SubmitJob, agent: Agent) -> tuple[SubmitJob, AgentConfig]:
    """Return a job with no more steps than its agent sets, and the configuration by which it goes.

    A fork counts the steps that it shares: it may take more of them than its agent lets a job take that begins.
    """
    own = set(INHERITED).difference(agent.inherits)
    if job.fork is None:
        options = bounded(job.options, agent.config, own=own)
        job = job if options is job.options else job.model_copy(update={"options": options})
    return job, remembering(narrowed(agent.config, job.options, own=own), job.user_id)


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


def too_long(inputs: RoutingInput) -> Failure | None:
    """Return why an input has no place in its agent's context; what a fork shares was read before."""
    level = inputs.context_level
    problem = message_problem(inputs.text, level) if level is not None and inputs.job.fork is None else None
    return Failure(code="input_too_long", message=problem) if problem else None


def unusable_schema(job: SubmitJob) -> Failure | None:
    """Return why no answer could be checked against a job's own schema."""
    schema = job.options.output_schema
    problem = None if schema is None else schema_problem(schema)
    message = f"options.output_schema is no JSON Schema: {problem}"
    return Failure(code="invalid_output_schema", message=message) if problem else None


def unusable_client_tools(job: SubmitJob, config: AgentConfig) -> Failure | None:
    """Return why a model could not be told of the tools that a job's caller brings along."""
    for tool in job.options.client_tools or ():
        if tool.name in config.tools:
            return _client_tools_refused(f"its agent has a tool {tool.name!r} of its own")
        if (problem := arguments_schema_problem(tool.input_schema)) is not None:
            return _client_tools_refused(f"input_schema of {tool.name!r}: {problem}")
    return None


def _client_tools_refused(why: str) -> Failure:
    return Failure(code="client_tools_refused", message=f"options.client_tools: {why}")


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
    # What remembers makes no call of that model: a helper's, which is looked at right before it.
    if call_usd is not None and call_usd > admitted.cap_usd and not job.keeps_memory:
        reason = (
            f"one call of {route.name} can cost {shown(call_usd)}, and the job may spend {dollars(admitted.cap_usd)} "
            f"({_whose(job, admitted)}): give it a larger options.budget_usd or a smaller options.max_output_tokens"
        )
        return Failure(code="budget_too_small", message=reason)
    return None


def _whose(job: SubmitJob, admitted: Admitted) -> str:
    """Return where the limit of a job's spending comes from."""
    if admitted.shares_cap:
        return "what is left for the job that started it"
    if job.options.budget_usd == admitted.cap_usd:
        return "its own options.budget_usd"
    if admitted.agent.config.max_cost_usd == admitted.cap_usd:
        return "max_cost_usd of its agent or of the tenant's settings"
    return "a budget for each job" if admitted.cap_set else DEFAULT_CAP


def _remedy(job: SubmitJob, admitted: Admitted) -> str:
    """Return what lets it spend more."""
    if admitted.shares_cap:
        return "raise the budget of that job"
    if job.options.budget_usd == admitted.cap_usd:
        return "give it a larger one"
    return "raise it" if admitted.cap_set else "give it an options.budget_usd"
