"""What metrics count of a job's log, each thing once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wayline.contracts.money import Usage
from wayline.telemetry import metrics


class ModelEnded(NamedTuple):
    provider: str
    model: str
    usage: Usage | None
    seconds: float


class ToolEnded(NamedTuple):
    tool: str
    effect: str
    status: str
    seconds: float


class JobEnded(NamedTuple):
    outcome: str
    agent: str
    seconds: float


Fact = ModelEnded | ToolEnded | JobEnded


def count(facts: Sequence[Fact]) -> None:
    """Add facts to the metrics."""
    for fact in facts:
        if isinstance(fact, JobEnded):
            metrics.jobs_ended.labels(fact.outcome, fact.agent).inc()
            metrics.job_seconds.labels(fact.outcome).observe(fact.seconds)
        elif isinstance(fact, ModelEnded):
            _count_model(fact)
        else:
            metrics.tool_calls.labels(fact.tool, fact.effect, fact.status).inc()
            metrics.tool_seconds.labels(fact.tool).observe(fact.seconds)


def _count_model(fact: ModelEnded) -> None:
    metrics.gen_ai_seconds.labels(fact.provider, fact.model).observe(fact.seconds)
    if fact.usage is None:
        return
    if fact.usage.cache_read:
        metrics.cache_read_tokens.labels(fact.provider, fact.model).inc(fact.usage.cache_read)
    for kind, tokens in fact.usage:
        if tokens:
            metrics.gen_ai_tokens.labels(fact.provider, fact.model, kind).inc(tokens)
