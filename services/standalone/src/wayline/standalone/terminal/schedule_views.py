"""Schedules, drawn for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape

from wayline.standalone.terminal.job_views import shortened, status
from wayline.standalone.terminal.table import details, table


def schedules_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row a schedule."""
    return table(
        ("schedule", "when", "agent", "next", "last", "outcome", "job"),
        (_row(schedule) for schedule in page["schedules"]),
        nothing="no schedules",
    )


def _row(schedule: dict[str, Any]) -> tuple[str, ...]:
    last = schedule["firings"][0] if schedule["firings"] else None
    return (
        schedule["name"],
        _when(schedule),
        escape(schedule["job"]["agent"]),
        _next(schedule),
        _minute(last["due_at"]) if last else "",
        _outcome(last) if last else "",
        (last["job_id"] or "") if last else "",
    )


def schedule_details(schedule: dict[str, Any]) -> RenderableType:
    """Draw one schedule and a row for each of its last firings."""
    job, text = schedule["job"], schedule["job"]["input"]
    about = (
        ("schedule", f"{schedule['name']}, version {schedule['version']}"),
        ("when", _when(schedule)),
        ("next", ", ".join(map(_minute, schedule["next_firings"])) or _next(schedule)),
        ("agent", escape(job["agent"])),
        ("session", escape(job.get("session_id") or "")),
        ("user", escape(job.get("user_id") or "")),
        ("input", escape(shortened(text) if isinstance(text, str) else f"{len(text)} parts")),
        ("missed", schedule["missed"]),
        ("overlap", schedule["overlap"]),
    )
    firings = table(
        ("due", "outcome", "job", "reason"),
        (
            (_minute(one["due_at"]), _outcome(one), one["job_id"] or "", escape(shortened(_reason(one))))
            for one in schedule["firings"]
        ),
        nothing="it has not fired yet",
    )
    return Group(details((name, value) for name, value in about if value), firings)


def _when(schedule: dict[str, Any]) -> str:
    if schedule["at"]:
        return f"at {_minute(schedule['at'])}"
    zone = "" if schedule["timezone"] == "UTC" else f" {schedule['timezone']}"
    return escape(f"{schedule['cron']}{zone}")


def _next(schedule: dict[str, Any]) -> str:
    if schedule["next_at"]:
        return _minute(schedule["next_at"])
    return "over" if schedule["enabled"] else "[yellow]disabled[/yellow]"


def _minute(moment: str) -> str:
    """Return a moment in UTC without its fraction of a second."""
    return f"{moment[:19].replace('T', ' ')}Z"


def _outcome(firing: dict[str, Any]) -> str:
    if firing["outcome"] == "fired":
        missed = f" (+{firing['missed']} missed)" if firing["missed"] else ""
        return status(firing["status"] or "queued") + missed
    style = "red" if firing["outcome"] == "refused" else "yellow"
    return f"[{style}]{firing['outcome']}[/{style}]"


def _reason(firing: dict[str, Any]) -> str:
    """Return why nothing was submitted, or why the job failed."""
    error = firing["error"]
    return firing["reason"] or (f"{error['code']}: {error['message']}" if error else "")
