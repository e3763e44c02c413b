"""The spans that are made from the log, named as the GenAI conventions name them; their ids are derived."""

from __future__ import annotations

from datetime import datetime, timedelta

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.jobs import Route, SubmitJob
from wayline.contracts.money import Usage
from wayline.telemetry import names
from wayline.tracing.drafts import Draft

JOB_STATUS = "wayline.job.status"

CallEnd = e.ModelCompleted | e.ModelFailed | e.AuxiliaryCompleted | e.AuxiliaryFailed
"""How a priced call ended."""


def root_span(tenant: str, job_id: str, at: datetime) -> Draft:
    """The whole job."""
    attributes = {names.GEN_AI_OPERATION: "invoke_agent", names.TENANT: tenant, names.JOB: job_id}
    return Draft(ids.job_span(tenant, job_id), None, "invoke_agent", at, attributes=dict(attributes))


def name_agent(root: Draft, job: SubmitJob) -> None:
    """Who answers the job, and which conversation it belongs to."""
    root.name = f"invoke_agent {job.agent}"
    root.attributes[names.GEN_AI_AGENT_NAME] = job.agent
    if job.session_id:
        root.attributes[names.GEN_AI_CONVERSATION] = job.session_id


def name_policy(root: Draft, event: e.JobRouted) -> None:
    """Whose job it is, and which policy decided."""
    root.attributes[names.GEN_AI_AGENT_VERSION] = str(event.agent_version)
    if event.policy:
        root.attributes[names.ROUTE_POLICY] = event.policy


def name_route(root: Draft, route: Route) -> None:
    """Which model the job was sent to, and why."""
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


def step_span(tenant: str, job_id: str, step: int, root: Draft, at: datetime) -> Draft:
    """One answer of the model and the tool calls it asked for."""
    span_id = ids.step_span(tenant, job_id, step)
    return Draft(span_id, root.span_id, f"step {step}", at, attributes={names.STEP: step})


def chat_span(
    tenant: str, job_id: str, *, step: int, attempt: int, provider: str, model: str, parent: Draft, at: datetime
) -> Draft:
    """One attempt of a model call."""
    return Draft(
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


def answer_chat(span: Draft, event: e.ModelCompleted) -> None:
    """What is known of a call once it is answered."""
    span.attributes[names.GEN_AI_FINISH_REASONS] = [event.stop_reason]
    if event.notes:
        span.attributes[names.NOTES] = list(event.notes)
    if event.unsettled is None:
        span.attributes[names.CACHE_HIT] = event.usage.cache_read > 0
    if event.saved_usd is not None:
        span.attributes[names.CACHE_SAVED] = str(event.saved_usd)
    if event.first_token_ms is not None:
        span.attributes[names.GEN_AI_FIRST_CHUNK] = event.first_token_ms / 1_000


def bound_chat(span: Draft, bounds: e.Bounds | None) -> None:
    """Between what a call can have cost whose usage never arrived; in no sum of costs."""
    if bounds is not None:
        said = {names.COST_LOWER: bounds.lower_usd, names.COST_UPPER: bounds.upper_usd}
        span.attributes.update({name: str(usd) for name, usd in said.items() if usd is not None})


def price_chat(span: Draft, usage: Usage, event: CallEnd) -> None:
    """What the call used and cost: only here, so that nothing is added twice."""
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


def aux_span(tenant: str, job_id: str, event: e.AuxiliaryRequested | e.AuxiliaryCompleted, root: Draft) -> Draft:
    """A priced call beside the conversation; where its request was never read it begins as long ago as it took."""
    took_ms = event.duration_ms if isinstance(event, e.AuxiliaryCompleted) else 0.0
    return Draft(
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


def tool_span(tenant: str, job_id: str, event: e.ToolRequested | e.ToolCompleted, parent: Draft) -> Draft:
    """One tool call; where its request was never read it begins as long ago as it took."""
    took_ms = event.duration_ms if isinstance(event, e.ToolCompleted) else 0.0
    return Draft(
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
