"""The first record of a job that branches off another one. Pure."""

from __future__ import annotations

from dataclasses import replace

from wayline.contracts.agents import Agent, AgentConfig
from wayline.contracts.events import Event, JobForked, JobRouted, JobSubmitted
from wayline.contracts.jobs import Fork, SubmitJob
from wayline.journal import Branch, ForkRefused
from wayline.router.admission.conditions import Admitted
from wayline.routing import STAYS, choose_limits


def require_forkable(job: SubmitJob) -> None:
    """Refuse a fork that could not be one, with ForkRefused."""
    if job.session_id is not None:
        raise ForkRefused("a fork is in no session: leave session_id out")
    if job.options.dry_run:
        raise ForkRefused("a fork cannot be planned: leave options.dry_run out")


def require_agent(job: SubmitJob, branch: Branch) -> None:
    """Refuse a fork with an agent that is not its origin's, with ForkRefused."""
    agent = branch.submitted.job.agent
    if job.agent != agent:
        raise ForkRefused(f"the job that it branches off is of agent {agent!r}, not {job.agent!r}")


def as_pinned(admitted: Admitted, branch: Branch, fork: Fork) -> Admitted:
    """Return who answers the fork: the agent as its origin pinned it, so that its prompt goes on as it began."""
    routed = branch.routed
    config = admitted.agent.config if routed is None else routed.config
    if fork.prompt is not None:
        config = config.model_copy(update={"instructions": fork.prompt})
    version = admitted.agent.version if routed is None else routed.agent_version
    default = admitted.agent.default_model
    if routed is not None:
        # Without slots a default took it, whatever the settings say today.
        decided = routed.candidates
        default = routed.route.name if decided.cards and not decided.slots else None
    agent = Agent(name=admitted.agent.name, version=version, config=config, default_model=default)
    # No label chose its origin's version for it.
    return replace(admitted, agent=agent, label=admitted.label if routed is None else None)


def forked(first: JobSubmitted, decided: JobRouted, branch: Branch, today: AgentConfig) -> list[Event]:
    """Return the first record: under today's limits, with the model its origin had there unless another is named."""
    limits = choose_limits(first.job.options, today, context_level=decided.limits.context_level)
    limits = limits.model_copy(update={"budget_usd": decided.limits.budget_usd})
    route, before = decided.route, branch.job.routing.route
    if first.job.options.model is None and before is not None and decided.candidates.card(before.name):
        route = before.model_copy(update={"classifier": None, "reason": STAYS})
    decided = decided.model_copy(update={"limits": limits, "route": route})
    begun = JobForked(
        job_id=first.job_id, seq=3, at=first.at, trace=first.trace, origin=branch.origin, prefix=branch.prefix
    )
    return [first, decided, begun]
