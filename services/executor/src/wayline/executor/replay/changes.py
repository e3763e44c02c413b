"""Recorded logs as they would begin with another model, another prompt or today's agent. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.models import ModelCard
from wayline.routing import choose_limits
from wayline.routing.job_overrides import bounded, narrowed, remembering


def with_model(events: Sequence[e.Event], card: ModelCard) -> list[e.Event]:
    """Return a log in which another model was chosen and made the calls of the one that was."""
    chosen = next((event.route for event in events if isinstance(event, e.JobRouted)), None)
    if chosen is None:
        return list(events)
    named = {"provider": card.provider, "model": card.model}

    def changed(event: e.Event) -> e.Event:
        if isinstance(event, e.JobRouted):
            others = tuple(known for known in event.candidates.cards if known.name != card.name)
            candidates = event.candidates.model_copy(update={"cards": (card, *others)})
            route = event.route.model_copy(update={**named, "tier": card.tier})
            return event.model_copy(update={"route": route, "candidates": candidates})
        if isinstance(event, e.ModelRequested) and (event.provider, event.model) == (chosen.provider, chosen.model):
            return event.model_copy(update=named)
        return event

    return [changed(event) for event in events]


def with_prompt(events: Sequence[e.Event], instructions: str) -> list[e.Event]:
    """Return a log whose agent has another system prompt."""
    return [
        event.model_copy(update={"config": event.config.model_copy(update={"instructions": instructions})})
        if isinstance(event, e.JobRouted)
        else event
        for event in events
    ]


def with_config(events: Sequence[e.Event], config: AgentConfig, *, own: Collection[str] = ()) -> list[e.Event]:
    """Return a log whose agent is configured as today; what the job itself asked for stays.

    `own`: the fields that the agent sets itself.
    """
    job = next((event.job for event in events if isinstance(event, e.JobSubmitted)), None)
    if job is None:
        return list(events)
    options = bounded(job.options, config, own=own) if job.fork is None else job.options
    narrower = remembering(narrowed(config, options, own=own), job.user_id)

    def changed(event: e.Event) -> e.Event:
        if not isinstance(event, e.JobRouted):
            return event
        level = event.limits.steps_level if config.adapt_steps else None
        context_level = event.limits.context_level if config.context == "budgeted" else None
        limits = choose_limits(options, config, steps_level=level, context_level=context_level)
        limits = limits.model_copy(update={"budget_usd": event.limits.budget_usd})
        return event.model_copy(update={"config": narrower, "limits": limits})

    return [changed(event) for event in events]
