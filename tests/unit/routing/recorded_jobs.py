"""The log of a job that called its model twice, as a backtest reads it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage
from wayline.contracts.events import (
    AuxiliaryCompleted,
    Event,
    JobRerouted,
    JobRouted,
    JobSubmitted,
    ModelCompleted,
    SpanRef,
    TaskClassified,
)
from wayline.contracts.jobs import JobOptions, SubmitJob
from wayline.contracts.models import ModelCard, Prices, Rates, Tier
from wayline.contracts.money import Usage
from wayline.llm.prices import cost
from wayline.routing import RoutingInput, choose_limits, choose_route

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
USAGE = Usage(input=10_000, cache_read=4_000, output=1_000)


def card(tier: Tier, usd: str | None) -> ModelCard:
    rates = Rates(input=Decimal(usd), output=Decimal(usd) * 5, cache_read=Decimal(usd) / 10) if usd else None
    return ModelCard(provider="a", model=tier, tier=tier, prices=Prices(rates=rates) if rates else None)


CARDS = (card("flash", "0.1"), card("standard", "2"), card("premium", "4"))


ASKED_USD = Decimal("0.00004")


def recorded(
    task: str | None, *, cards: tuple[ModelCard, ...] = CARDS, classified: str | None = None, **facts: Any
) -> list[dict[str, Any]]:
    """The log of a job that called its model twice, after a classification where one is named."""
    config = AgentConfig(classify=classified is not None)
    job = SubmitJob(agent="a", input="Answer the letter.", options=JobOptions(task_type=task))
    inputs = RoutingInput(job, config, **facts)
    decision = choose_route(inputs, default_model="offline/extractive", cards=cards)
    head: dict[str, Any] = {"job_id": "j1", "at": NOW, "trace": SpanRef(trace_id="t", span_id="s")}
    events: list[Event] = [
        JobSubmitted(seq=1, tenant="t", job=job, content_hash="h", **head),
        JobRouted(
            seq=2,
            agent="a",
            agent_version=1,
            config=config,
            route=decision.route,
            limits=choose_limits(job.options, config, steps_level=inputs.steps_level),
            candidates=decision.candidates,
            policy=decision.policy,
            **facts,
            **head,
        ),
    ]
    route = decision.route
    if classified is not None:
        assert route.classifier == "a/flash"
        aside = {"purpose": "classification", "attempt_id": "t/j1/0/a1", "provider": "a", "model": "flash"}
        events.append(AuxiliaryCompleted(seq=3, **aside, cost_usd=ASKED_USD, **head))
        events.append(TaskClassified(seq=4, task_type=classified or None, **head))
        moved = decision.candidates.tasks.get(classified)
        if moved is not None:
            route = moved
            events.append(JobRerouted(seq=5, route=moved, cause="classification", **head))
    used = decision.candidates.card(route.name)
    assert used is not None
    for step in (1, 2):
        events.append(
            ModelCompleted(
                seq=len(events) + 1,
                step=step,
                attempt=1,
                attempt_id=f"{step}",
                message=AssistantMessage(text="so"),
                usage=USAGE,
                cost_usd=cost(used, USAGE),
                stop_reason="end",
                duration_ms=1,
                **head,
            )
        )
    return [event.model_dump(mode="json") for event in events]
