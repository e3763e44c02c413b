"""The events of a record of a job's log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from wayline.contracts.events import JobSubmitted
from wayline.notifier.events.event import Event

ENDS = {"job.completed": "completed", "job.failed": "failed", "job.cancelled": "cancelled"}
OWN_WAITS = frozenset({"turn"})
"""What a job waits for before it has begun: nothing has happened yet."""


def events_of(tenant: str, submitted: JobSubmitted, values: Iterable[dict[str, Any]]) -> list[Event]:
    """Return what webhooks are told of a record's events, given as decoded JSON."""
    found: list[Event] = []
    for value in values:
        if value["type"] in ENDS:
            found.append(_ended(tenant, submitted, value))
        elif value["type"] == "job.parked" and value["waiting"]["why"] not in OWN_WAITS:
            found += _parked(tenant, submitted, value)
    return found


def _ended(tenant: str, submitted: JobSubmitted, value: dict[str, Any]) -> Event:
    error = value.get("error") or {}
    data: dict[str, Any] = {"status": ENDS[value["type"]], "cost_usd": value["cost_usd"], "steps": value["steps"]}
    content: dict[str, Any] = {}
    if value["type"] == "job.completed":
        data["partial"] = value.get("partial", False)
        content["answer"] = value["answer"]
    elif error:
        data["error_code"] = error["code"]
        content["error_message"] = error["message"]
    elif value.get("reason"):
        content["reason"] = value["reason"]
    return _event(tenant, submitted, value, key=str(value["seq"]), data=data, content=content)


def _parked(tenant: str, submitted: JobSubmitted, value: dict[str, Any]) -> Sequence[Event]:
    waiting = value["waiting"]
    data = {"status": "parked", "waiting_for": waiting["why"], "expires_at": waiting.get("expires_at")}
    content = {"question": waiting["question"]} if waiting.get("question") else {}
    if waiting.get("tool"):
        data["tool"] = waiting["tool"]
    parked = _event(tenant, submitted, value, key=str(value["seq"]), data=data, content=content)
    # The same approvals may be parked for again, when another one of them was decided.
    return [parked, *(_approval(tenant, submitted, value, one) for one in waiting.get("approvals", ()))]


def _approval(tenant: str, submitted: JobSubmitted, value: dict[str, Any], one: dict[str, Any]) -> Event:
    data = {
        "approval_id": one["approval_id"],
        "tool": one["tool"],
        "cause": one["why"],
        "expires_at": one["expires_at"],
    }
    content = {"arguments": one["arguments"], "reason": one.get("reason", "")}
    key = f"approval/{one['approval_id']}"
    return _event(tenant, submitted, value, key=key, data=data, content=content, type="approval.requested")


def _event(
    tenant: str,
    submitted: JobSubmitted,
    value: dict[str, Any],
    *,
    key: str,
    data: dict[str, Any],
    content: dict[str, Any],
    type: str | None = None,
) -> Event:
    job, job_id = submitted.job, submitted.job_id
    about = {
        "job_id": job_id,
        "agent": job.agent,
        "user_id": job.user_id,
        "session_id": job.session_id,
        "tags": list(job.options.tags or ()),
        "parent_job_id": submitted.parent.job_id if submitted.parent else None,
        "schedule": submitted.schedule.schedule if submitted.schedule else None,
    }
    return Event(
        tenant=tenant,
        key=f"{job_id}/{key}",
        type=type or value["type"],
        at=datetime.fromisoformat(value["at"]),
        data={**about, **data},
        content=content,
        links={"job": f"/v1/jobs/{job_id}", "trace": f"/v1/jobs/{job_id}/trace"},
        job_id=job_id,
        user_id=job.user_id,
        agent=job.agent,
        tags=job.options.tags or (),
    )
