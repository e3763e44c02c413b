"""Which model takes a job: the simplest honest policy, and its reason in one sentence."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import Reject
from wayline.contracts.events import Limits
from wayline.contracts.jobs import JobOptions, Route

OFFLINE = "offline"


def choose_route(options: JobOptions, config: AgentConfig, *, default_model: str) -> Route:
    """The job's own wish before its agent's, its agent's before the default.

    Raises Reject when what was asked for is not `provider/model`.
    """
    if options.model:
        wanted, reason = options.model, "the job asked for it"
    elif config.model:
        wanted, reason = config.model, "the agent is set to it"
    else:
        wanted, reason = default_model, "neither the job nor its agent names a model, so the default takes it"
    provider, _, model = wanted.partition("/")
    if not provider or not model:
        raise Reject(f"model {wanted!r} is not of the form provider/model", code="invalid_model", status=422)
    local = provider == OFFLINE
    return Route(
        provider=provider,
        model=model,
        tier="flash" if local else "standard",
        reason=reason,
        estimated_cost_usd=Decimal(0) if local else None,
    )


def choose_limits(options: JobOptions, config: AgentConfig) -> Limits:
    """What bounds the job: its own options where it has them, else its agent's configuration."""
    return Limits(
        max_steps=options.max_steps or config.max_steps,
        max_seconds=options.max_seconds or config.max_seconds,
        max_output_tokens=options.max_output_tokens or config.max_output_tokens,
        budget_usd=options.budget_usd,
    )
