"""What metrics count of a job's log, each thing once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wayline.contracts.events import JobCancelled, JobCompleted, JobFailed
from wayline.contracts.jobs import Route
from wayline.contracts.money import Usage
from wayline.llm.labels import ModelLabels, provider_label
from wayline.telemetry import metrics


class ModelEnded(NamedTuple):
    """A call of a model is over, the conversation's or one beside it."""

    provider: str
    model: str
    usage: Usage | None
    seconds: float


class ToolEnded(NamedTuple):
    """A call of a tool is over."""

    tool: str
    effect: str
    status: str
    seconds: float


class JobEnded(NamedTuple):
    """A job is over."""

    outcome: str
    agent: str
    seconds: float
    tier: str | None = None
    cost_ratio: float | None = None
    """Of what was predicted; None: nothing was, or nobody knows what it cost."""


Fact = ModelEnded | ToolEnded | JobEnded


def predicted(end: JobCompleted | JobFailed | JobCancelled, route: Route | None) -> tuple[str | None, float | None]:
    """A job's tier, and what it cost of what was predicted; a dry run, or one never begun, says nothing of that."""
    expected = route.estimated_cost_usd if route else None
    if route is None or not expected or not end.steps or end.cost_usd is None:
        return None, None
    return route.tier, float(end.cost_usd / expected)


def count(facts: Sequence[Fact], label: ModelLabels) -> None:
    """Add facts to the metrics, under labels that have so many values."""
    for fact in facts:
        if isinstance(fact, JobEnded):
            metrics.jobs_ended.labels(fact.outcome, fact.agent).inc()
            metrics.job_seconds.labels(fact.outcome).observe(fact.seconds)
            if fact.tier is not None and fact.cost_ratio is not None:
                metrics.cost_ratio.labels(fact.tier).observe(fact.cost_ratio)
        elif isinstance(fact, ModelEnded):
            _count_model(fact, provider_label(fact.provider), label(fact.model))
        else:
            metrics.tool_calls.labels(fact.tool, fact.effect, fact.status).inc()
            metrics.tool_seconds.labels(fact.tool).observe(fact.seconds)


def _count_model(fact: ModelEnded, provider: str, model: str) -> None:
    metrics.gen_ai_seconds.labels(provider, model).observe(fact.seconds)
    if fact.usage is None:
        return
    if fact.usage.cache_read:
        metrics.cache_read_tokens.labels(provider, model).inc(fact.usage.cache_read)
    for kind, tokens in fact.usage:
        if tokens:
            metrics.gen_ai_tokens.labels(provider, model, kind).inc(tokens)
