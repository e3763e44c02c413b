"""The facts of a job's log that metrics count, each once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from prometheus_client import Counter

from wayline.contracts.events import JobCancelled, JobCompleted, JobFailed
from wayline.contracts.jobs import Route
from wayline.contracts.money import Usage
from wayline.llm.labels import OWN_MAX, ModelLabels, provider_label
from wayline.telemetry import metrics
from wayline.telemetry.bounded_labels import BoundedLabels
from wayline.tracing.settings import LABELS_MAX, LABELS_PER_TENANT_MAX


class ModelEnded(NamedTuple):
    """A call of a model is over, the conversation's or one beside it."""

    provider: str
    model: str
    usage: Usage | None
    seconds: float
    first_token_s: float | None = None


class ToolEnded(NamedTuple):
    """A call of a tool is over."""

    tool: str
    effect: str
    status: str
    seconds: float


class ApprovalEnded(NamedTuple):
    """An approval was decided, or not in time."""

    outcome: str
    seconds: float


class JobTaken(NamedTuple):
    """An executor has taken a job for the first time."""

    lane: str
    seconds: float


class JobEnded(NamedTuple):
    """A job is over."""

    outcome: str
    agent: str
    seconds: float
    tier: str | None = None
    cost_ratio: float | None = None
    """Of what was predicted; None: nothing was, or nobody knows what it cost."""
    tool_tokens_saved: int = 0


Example = dict[str, str] | None
"""What a measurement leads to: an exemplar of Prometheus."""
EXAMPLE_MAX_CHARS = 128
"""Of an exemplar, by the exposition format."""


def _example(trace_id: str | None, job_id: str) -> Example:
    """Return a trace and its job, or the trace alone where the job's id is too long."""
    if trace_id is None:
        return None
    both = {"trace_id": trace_id, "job_id": job_id}
    fits = sum(len(name) + len(value) for name, value in both.items()) <= EXAMPLE_MAX_CHARS
    return both if fits and job_id else {"trace_id": trace_id}


Fact = ModelEnded | ToolEnded | ApprovalEnded | JobTaken | JobEnded


def predicted(end: JobCompleted | JobFailed | JobCancelled, route: Route | None) -> tuple[str | None, float | None]:
    """Return a job's tier and the ratio of its cost to the prediction; a dry run, or one never begun, has neither."""
    expected = route.estimated_cost_usd if route else None
    if route is None or not expected or not end.steps or end.cost_usd is None:
        return None, None
    return route.tier, float(end.cost_usd / expected)


class JobMetrics:
    """Adds facts to the metrics, under labels that have so many values, and so many of one tenant."""

    def __init__(
        self,
        *,
        names_max: int = LABELS_MAX,
        names_per_tenant_max: int = LABELS_PER_TENANT_MAX,
        own_models_max: int = OWN_MAX,
    ) -> None:
        own = BoundedLabels(most=own_models_max, per_tenant_max=min(names_per_tenant_max, -(-own_models_max // 2)))
        self._model = ModelLabels(own)
        self._agent = BoundedLabels(most=names_max, per_tenant_max=names_per_tenant_max)
        self._tool = BoundedLabels(most=names_max, per_tenant_max=names_per_tenant_max)
        # To look a label's values up costs more than to count: what they stand for is kept, as Prometheus keeps it.
        self._jobs_ended = cache(metrics.jobs_ended.labels)
        self._job_seconds = cache(metrics.job_seconds.labels)
        self._cost_ratio = cache(metrics.cost_ratio.labels)
        self._tool_tokens_saved = cache(metrics.tool_tokens_saved.labels)
        self._tool_calls = cache(metrics.tool_calls.labels)
        self._tool_seconds = cache(metrics.tool_seconds.labels)
        self._approvals_decided = cache(metrics.approvals_decided.labels)
        self._approval_seconds = cache(metrics.approval_seconds.labels)
        self._model_seconds = cache(metrics.gen_ai_seconds.labels)
        self._first_chunk_seconds = cache(metrics.gen_ai_first_chunk_seconds.labels)
        self._job_queue_seconds = cache(metrics.job_queue_seconds.labels)
        self._tokens = cache(_tokens_of)
        self._cache_read_tokens = cache(metrics.cache_read_tokens.labels)

    def count(self, facts: Sequence[Fact], *, tenant: str = "", trace_id: str | None = None, job_id: str = "") -> None:
        """Add the facts of one job of a tenant; `trace_id`: of what a measurement leads to as an example."""
        example = _example(trace_id, job_id)
        for fact in facts:
            if isinstance(fact, JobEnded):
                self._count_job(fact, self._agent(fact.agent, tenant), example)
            elif isinstance(fact, ApprovalEnded):
                self._approvals_decided(fact.outcome).inc()
                self._approval_seconds(fact.outcome).observe(fact.seconds, example)
            elif isinstance(fact, JobTaken):
                self._job_queue_seconds(fact.lane).observe(fact.seconds, example)
            elif isinstance(fact, ModelEnded):
                self._count_model(fact, provider_label(fact.provider), self._model(fact.model, tenant), example)
            else:
                tool = self._tool(fact.tool, tenant)
                self._tool_calls(tool, fact.effect, fact.status).inc()
                self._tool_seconds(tool).observe(fact.seconds, example)

    def _count_job(self, fact: JobEnded, agent: str, example: Example) -> None:
        self._jobs_ended(fact.outcome, agent).inc()
        self._job_seconds(fact.outcome).observe(fact.seconds, example)
        if fact.tier is not None and fact.cost_ratio is not None:
            self._cost_ratio(fact.tier).observe(fact.cost_ratio, example)
        # A counter cannot fall: where deferring cost more than it spared, the job's view alone says so.
        if fact.tool_tokens_saved > 0:
            self._tool_tokens_saved(agent).inc(fact.tool_tokens_saved)

    def _count_model(self, fact: ModelEnded, provider: str, model: str, example: Example) -> None:
        self._model_seconds(provider, model).observe(fact.seconds, example)
        if fact.first_token_s is not None:
            self._first_chunk_seconds(provider, model).observe(fact.first_token_s, example)
        if fact.usage is None:
            return
        if fact.usage.cache_read:
            self._cache_read_tokens(provider, model).inc(fact.usage.cache_read)
        used = fact.usage
        written = used.cache_write_5m + used.cache_write_1h
        counts = used.input, used.output, used.cache_read, written, used.reasoning
        for counter, tokens in zip(self._tokens(provider, model), counts, strict=True):
            if tokens:
                counter.inc(tokens)


MODALITY = "unknown"
"""Providers count tokens of text, images and sound together."""


def _tokens_of(provider: str, model: str) -> tuple[Counter, ...]:
    """Return what counts a model's tokens: of input, output, cache reads, cache writes and reasoning."""
    counters = (
        metrics.gen_ai_input_tokens,
        metrics.gen_ai_output_tokens,
        metrics.gen_ai_cache_read_tokens,
        metrics.gen_ai_cache_write_tokens,
        metrics.gen_ai_reasoning_tokens,
    )
    return tuple(counter.labels(provider, model, MODALITY) for counter in counters)
