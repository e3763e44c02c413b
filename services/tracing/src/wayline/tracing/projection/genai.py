"""The spans that are made from the log, named as the GenAI conventions name them; their ids are derived."""

from __future__ import annotations

from datetime import datetime, timedelta

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.jobs import Route, SubmitJob
from wayline.contracts.money import Usage
from wayline.telemetry import names
from wayline.tracing.projection.drafts import SpanDraft

JOB_STATUS = "wayline.job.status"

CallEnd = e.ModelCompleted | e.ModelFailed | e.AuxiliaryCompleted | e.AuxiliaryFailed
"""How a priced call ended."""


def root_span(tenant: str, job_id: str, at: datetime) -> SpanDraft:
    """Make the span of the whole job."""
    attributes = {names.GEN_AI_OPERATION: "invoke_agent", names.TENANT: tenant, names.JOB: job_id}
    return SpanDraft(ids.job_span(tenant, job_id), None, "invoke_agent", at, attributes=dict(attributes))


def name_agent(root: SpanDraft, job: SubmitJob) -> None:
    """Name the agent of a job, its conversation and its user."""
    root.name = f"invoke_agent {job.agent}"
    root.attributes[names.GEN_AI_AGENT_NAME] = job.agent
    if job.session_id:
        root.attributes[names.GEN_AI_CONVERSATION] = root.attributes[names.SESSION] = job.session_id
    if job.user_id:
        root.attributes[names.USER] = job.user_id


def name_policy(root: SpanDraft, event: e.JobRouted) -> None:
    """Name the version of a job's agent, and the policy that decided."""
    root.attributes[names.GEN_AI_AGENT_VERSION] = str(event.agent_version)
    if event.policy:
        root.attributes[names.ROUTE_POLICY] = event.policy


def name_route(root: SpanDraft, route: Route) -> None:
    """Name the model that the job was sent to, and why."""
    root.attributes |= {
        names.GEN_AI_PROVIDER: route.provider,
        names.GEN_AI_REQUEST_MODEL: route.model,
        names.ROUTE_REASON: route.reason,
        names.ROUTE_SLOT: route.slot,
        names.ROUTE_TIER: route.tier,
    }
    if route.task_type is not None:
        root.attributes[names.ROUTE_TASK] = route.task_type
    if route.complexity is not None:
        root.attributes[names.ROUTE_SCORE] = route.complexity.score


def step_span(tenant: str, job_id: str, step: int, root: SpanDraft, at: datetime) -> SpanDraft:
    """Make the span of a step: one answer of the model and the tool calls it asked for."""
    span_id = ids.step_span(tenant, job_id, step)
    return SpanDraft(span_id, root.span_id, f"step {step}", at, attributes={names.STEP: step, names.METHOD: "standard"})


def chat_span(
    tenant: str, job_id: str, *, step: int, attempt: int, provider: str, model: str, parent: SpanDraft, at: datetime
) -> SpanDraft:
    """Make the span of one attempt of a model call."""
    return SpanDraft(
        ids.model_span(tenant, job_id, step, attempt),
        parent.span_id,
        f"chat {model}",
        at,
        kind="client",
        attributes={
            names.GEN_AI_OPERATION: "chat",
            names.GEN_AI_PROVIDER: provider,
            names.GEN_AI_REQUEST_MODEL: model,
            names.STEP: step,
            names.ATTEMPT: attempt,
        },
    )


def answer_chat(span: SpanDraft, event: e.ModelCompleted) -> None:
    """Add what is known of a call once it is answered."""
    span.attributes[names.GEN_AI_FINISH_REASONS] = [event.stop_reason]
    if event.notes:
        span.attributes[names.NOTES] = list(event.notes)
    if event.unsettled is None:
        span.attributes[names.CACHE_HIT] = event.usage.cache_read > 0
    if event.saved_usd is not None:
        span.attributes[names.CACHE_SAVED] = str(event.saved_usd)
    if event.first_token_ms is not None:
        span.attributes[names.GEN_AI_FIRST_CHUNK] = event.first_token_ms / 1_000


def bound_chat(span: SpanDraft, bounds: e.Bounds | None) -> None:
    """Add the bounds of a call whose usage never arrived; they are in no sum of costs."""
    if bounds is not None:
        limits = {names.COST_LOWER: bounds.lower_usd, names.COST_UPPER: bounds.upper_usd}
        span.attributes.update({name: str(usd) for name, usd in limits.items() if usd is not None})


def price_chat(span: SpanDraft, usage: Usage, event: CallEnd) -> None:
    """Add what the call used and cost: only here, so that nothing is added twice."""
    span.usage, span.cost_usd = usage, event.cost_usd
    span.attributes[names.GEN_AI_INPUT_TOKENS] = usage.input
    span.attributes[names.GEN_AI_OUTPUT_TOKENS] = usage.output
    written = usage.cache_write_5m + usage.cache_write_1h
    if usage.cache_read:
        span.attributes[names.GEN_AI_CACHE_READ] = usage.cache_read
    if written:
        # Both spellings: readers in the field know one or the other.
        span.attributes[names.GEN_AI_CACHE_WRITE] = span.attributes[names.GEN_AI_CACHE_CREATION] = written
    if usage.reasoning:
        span.attributes[names.GEN_AI_REASONING] = usage.reasoning
    if event.cost_usd is not None:
        span.attributes[names.COST] = str(event.cost_usd)
    if isinstance(event, e.ModelCompleted) and event.saved_usd:
        span.attributes[names.CACHE_SAVED] = str(event.saved_usd)


def aux_span(
    tenant: str, job_id: str, event: e.AuxiliaryRequested | e.AuxiliaryCompleted, root: SpanDraft
) -> SpanDraft:
    """Make the span of an auxiliary call; without its request it begins as long ago as the call took."""
    took_ms = event.duration_ms if isinstance(event, e.AuxiliaryCompleted) else 0.0
    return SpanDraft(
        ids.aux_span(tenant, job_id, event.attempt_id),
        root.span_id,
        f"{event.purpose} {event.model}",
        event.at - timedelta(milliseconds=took_ms),
        kind="client",
        attributes={
            names.PURPOSE: event.purpose,
            names.GEN_AI_PROVIDER: event.provider,
            names.GEN_AI_REQUEST_MODEL: event.model,
        },
    )


def tool_span(
    tenant: str, job_id: str, event: e.ToolRequested | e.ToolCompleted | e.ApprovalRequested, parent: SpanDraft
) -> SpanDraft:
    """Make the span of a tool call; without its request it begins as long ago as the call took."""
    took_ms = event.duration_ms if isinstance(event, e.ToolCompleted) else 0.0
    return SpanDraft(
        ids.tool_span(tenant, job_id, event.step, event.call),
        parent.span_id,
        f"execute_tool {event.tool}",
        event.at - timedelta(milliseconds=took_ms),
        attributes={
            names.GEN_AI_OPERATION: "execute_tool",
            names.GEN_AI_TOOL_NAME: event.tool,
            names.GEN_AI_TOOL_CALL: event.call,
            names.GEN_AI_TOOL_TYPE: "function",
            names.STEP: event.step,
        },
    )
