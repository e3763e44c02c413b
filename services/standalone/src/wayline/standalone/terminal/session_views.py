"""Sessions, drawn for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape

from wayline.standalone.terminal.job_views import shortened, status, tokens
from wayline.standalone.terminal.money_views import usd
from wayline.standalone.terminal.table import details, table


def sessions_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row a session."""
    return table(
        ("session", "agent", "user", "turns", "last used"),
        (
            (
                escape(one["session_id"]),
                escape(one["agent"]),
                escape(one["user_id"] or ""),
                str(one["turns"]),
                one["updated_at"][:19],
            )
            for one in page["sessions"]
        ),
        nothing="no sessions",
    )


def session_details(session: dict[str, Any]) -> RenderableType:
    """Draw one session with its cost and what it is about, and a row for each of its turns."""
    context = session["context"]
    about = (
        ("session", escape(session["session_id"])),
        ("agent", escape(session["agent"])),
        ("user", escape(session["user_id"] or "")),
        ("busy with", session["busy_with"]),
        ("cost", usd(session["cost_usd"])),
        ("cached", _share(session["cache_read_share"])),
        ("about", ", ".join(map(_entity, context["entities"]))),
        ("tools used", escape(", ".join(context["tools_used"]))),
        ("tools found", escape(", ".join(context["tools_discovered"]))),
    )
    turns = table(
        ("turn", "job", "status", "tokens", "cached", "cost", "input"),
        (_turn(turn["number"], turn["job"]) for turn in session["page"]),
        nothing="no turns",
    )
    return Group(details((name, value) for name, value in about if value), turns)


def _turn(number: int, job: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(number),
        job["job_id"],
        status(job["status"]),
        str(tokens(job["usage"])),
        _cached(job["usage"]),
        usd(job["cost_usd"]),
        escape(shortened(job.get("input") or "")),
    )


def _entity(one: dict[str, Any]) -> str:
    return escape(f"{one['type']} {one['id']}" + (f" ({one['name']})" if one["name"] else ""))


def _cached(usage: dict[str, Any] | None) -> str:
    """Return the share of a job's input tokens that came from a prompt cache."""
    return _share(usage["cache_read"] / usage["input"] if usage and usage["input"] else None)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
