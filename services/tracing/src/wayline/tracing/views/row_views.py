"""Database rows as the models that are answered."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

from wayline.contracts import ids
from wayline.contracts.jobs import Failure, JobView, Route, Status
from wayline.contracts.money import Usage
from wayline.contracts.observation import joined, observation
from wayline.contracts.tools import RUN_CODE
from wayline.contracts.traces import CostRow, JobOrder, Step, StepCall
from wayline.store import Record
from wayline.telemetry import names
from wayline.tracing.errors import BadCursor
from wayline.tracing.projection.genai import JOB_STATUS
from wayline.tracing.rows import BeyondColumns
from wayline.tracing.views.job_search import PLACES
from wayline.tracing.views.trace_tree import TreeNode


def job_view(row: Record, *, whole: bool = False) -> JobView:
    """Return a job as the list shows it; `whole`: with its whole answer."""
    beyond = BeyondColumns.model_validate(row["beyond"], extra="ignore") if row["beyond"] is not None else None
    route = beyond.route if beyond else None
    if beyond is None and row["provider"] is not None:
        route = Route(
            provider=row["provider"],
            model=row["model"],
            tier=row["tier"],
            reason=row["route_reason"],
            estimated_cost_usd=row["estimated_cost_usd"],
        )
    error = None
    if row["error_code"] is not None:
        error = Failure(code=row["error_code"], message=row["error_message"])
    job = JobView.model_validate(
        {
            **{name: row[name] for name in _SAME if name in row},
            "status": Status(row["status"]),
            "route": route,
            "error": error,
            "usage": row["usage"],
            "citations": row["citations"],
            "costs": row["costs"],
            "waiting_for": row["waiting_for"],
            "schedule": row["schedule"],
            "tags": row["tags"] or (),
            "feedback": row["feedback"],
            **({"total_cost_usd": None} if beyond is None else beyond.model_dump(exclude={"route"})),
        }
    )
    return job if whole else job.in_list()


def fitting(jobs: Iterable[JobView], *, most_bytes: int) -> list[JobView]:
    """Return the first jobs that fit into so many bytes, one at least."""
    page: list[JobView] = []
    size = 0
    for job in jobs:
        size += len(job.__pydantic_serializer__.to_json(job))
        if page and size > most_bytes:
            break
        page.append(job)
    return page


PLACE_DIGITS_MAX = 30
"""Before and behind the point of a cost or a duration: a number of a thousand digits is none of ours."""

_SAME = (
    *("job_id", "agent", "agent_version", "session_id", "user_id", "steps", "cost_usd", "answer", "partial"),
    *("input", "reason", "created_at", "ended_at", "trace_id", "fingerprint"),
)


def step(row: Record) -> Step:
    """Return a step as the console shows it."""
    calls = tuple(_step_call(call) for call in row["calls"])
    return Step(
        step=row["step"],
        thought=row["thought"],
        tool=row["tool"],
        input=row["input"],
        output=row["output"],
        duration_ms=row["duration_ms"],
        status=row["status"],
        method="code" if any(call.tool == RUN_CODE for call in calls) else "standard",
        calls=calls,
        observation=joined(call.observation for call in calls if call.observation),
    )


def _step_call(values: dict[str, Any]) -> StepCall:
    call = StepCall.model_validate(values)
    if call.status not in ("success", "failed") or call.output is None:
        return call
    arguments = call.input if isinstance(call.input, dict) else None
    observed = observation(call.tool, arguments, call.output, failed=call.status == "failed")
    return call.model_copy(update={"observation": observed})


def cost_row(row: Record, group_by: tuple[str, ...]) -> CostRow:
    """Return one group's costs."""
    usage = Usage(**{name: row[name] for name in Usage.model_fields})
    return CostRow(
        group={name: row[name] for name in group_by},
        usage=usage,
        cache_read_share=round(usage.cache_read / usage.input, 6) if usage.input else None,
        **{name: row[name] for name in _SUMS},
        predicted_usd=row.get("predicted_usd"),
    )


_SUMS = (
    *("calls", "calls_unknown", "calls_unsettled", "cost_usd", "saved_usd", "lost_usd"),
    *("unsettled_lower_usd", "unsettled_upper_usd"),
)


def node(row: Record) -> TreeNode:
    """Return a span; the query names its columns in this order."""
    span_id, parent, anchor, name, service, kind, start, duration_ms, status, *rest = row
    attributes, links, events, usage, cost_usd, source = rest
    return TreeNode(
        span_id,
        parent,
        anchor,
        name,
        service,
        kind,
        start,
        duration_ms,
        status,
        orjson.loads(attributes),
        orjson.loads(links) if links else (),
        orjson.loads(events) if events else (),
        orjson.loads(usage) if usage else None,
        cost_usd,
        source,
    )


def root_of(job: Record) -> TreeNode:
    """Make the root of a job's trace from its row, for a job whose root span is past its retention."""
    ended = job["ended_at"]
    status = {"completed": "ok", "failed": "error", "cancelled": "unset"}.get(job["status"], "open")
    return TreeNode(
        span_id=ids.job_span(job["tenant"], job["job_id"]),
        parent=None,
        anchor=None,
        name=f"invoke_agent {job['agent']}",
        service="executor",
        kind="internal",
        start=job["created_at"],
        duration_ms=(ended - job["created_at"]).total_seconds() * 1_000 if ended else None,
        status=status,
        attributes={
            names.GEN_AI_OPERATION: "invoke_agent",
            names.GEN_AI_AGENT_NAME: job["agent"],
            names.TENANT: job["tenant"],
            names.JOB: job["job_id"],
            JOB_STATUS: job["status"],
        },
    )


def cursor(last: Record, sort: JobOrder) -> str:
    """Encode where a page ended."""
    place = [] if sort == "newest" else [sort, "" if last["place"] is None else str(last["place"])]
    return urlsafe_b64encode(" ".join([last["created_at"].isoformat(), last["job_id"], *place]).encode()).decode()


def after_cursor(text: str, sort: JobOrder) -> tuple[Decimal | None, datetime, str]:
    """Decode where the next page begins. Raises BadCursor, also for a page of another order."""
    try:
        at, job_id, *rest = urlsafe_b64decode(text.encode()).decode().split(" ")
        moment = datetime.fromisoformat(at)
        order, place = rest or ("newest", None)
        number = Decimal(place) if place else None
    except (ValueError, NotBase64, InvalidOperation):
        raise BadCursor(text) from None
    # In UTC, as our own cursors have it: another offset may lead to a year that no table takes.
    is_of_this = order == sort and (number is None) == (sort not in PLACES)
    if moment.utcoffset() != timedelta(0) or not job_id or "\x00" in job_id or not is_of_this:
        raise BadCursor(text)
    if number is not None and not (number.is_finite() and abs(number.adjusted()) < PLACE_DIGITS_MAX):
        raise BadCursor(text)
    return number, moment, job_id
