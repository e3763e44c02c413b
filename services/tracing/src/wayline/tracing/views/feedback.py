"""What was said of a job as a span of its trace. Pure."""

from __future__ import annotations

from typing import Any

from wayline.contracts import ids
from wayline.contracts.feedback import Feedback
from wayline.telemetry import names
from wayline.tracing.rows import SpanRow, as_json, clean

SPAN = "evaluation"


def feedback_span(tenant: str, job_id: str, said: Feedback, *, revision: int, trace_id: str) -> SpanRow:
    """Return the span beneath a job's root that carries the event `gen_ai.evaluation.result`.

    An event needs a span that is open still, and the job's own are not: so it has one, which lasts no time. A change of
    mind is another span: what a collector was sent is not taken back.
    """
    result: dict[str, Any] = {
        names.GEN_AI_EVALUATION_NAME: said.key,
        names.GEN_AI_EVALUATION_SCORE: said.score,
        names.GEN_AI_EVALUATION_LABEL: said.label,
        names.GEN_AI_EVALUATION_EXPLANATION: said.comment or None,
    }
    told = {name: value for name, value in result.items() if value is not None}
    return SpanRow(
        trace_id=trace_id,
        span_id=_span_id(tenant, job_id, said.by, said.key, revision),
        start=said.at,
        tenant=tenant,
        parent_span_id=ids.job_span(tenant, job_id),
        anchor=None,
        service="tracing",
        name=SPAN,
        kind="internal",
        duration_ms=0.0,
        status="unset",
        attributes=as_json({names.TENANT: tenant, names.JOB: job_id}),
        links=None,
        events=as_json([{"name": names.GEN_AI_EVALUATION, "at": said.at.isoformat(), "attributes": told}]),
        usage=None,
        cost_usd=None,
        seq=0,
    )


def feedback_spans(tenant: str, job_id: str, by: str, key: str, revisions: int) -> list[str]:
    """Return the ids of the spans of all that was said by one name about one key, one for each change of mind."""
    return [_span_id(tenant, job_id, by, key, revision) for revision in range(1, revisions + 1)]


def _span_id(tenant: str, job_id: str, by: str, key: str, revision: int) -> str:
    return ids.span_id(tenant, job_id, "feedback", key, revision, clean(by))
