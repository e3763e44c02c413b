"""Webhooks, drawn for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.markup import escape

from wayline.standalone.terminal.table import details, table


def webhooks_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row a webhook."""
    return table(
        ("webhook", "address", "state", "waiting", "given up"),
        (
            (one["name"], escape(one["url"] or "of each job"), _state(one), str(one["pending"]), str(one["failed"]))
            for one in page["webhooks"]
        ),
        nothing="no webhooks",
    )


def webhook_details(webhook: dict[str, Any]) -> RenderableType:
    """Draw one webhook, and its secret where that is new."""
    disabled = webhook["disabled"]
    about = (
        ("webhook", f"{webhook['name']}, version {webhook['version']}"),
        ("address", escape(webhook["url"] or "of each job")),
        ("events", ", ".join(webhook["events"])),
        ("agents", ", ".join(webhook["agents"])),
        ("tags", escape(", ".join(webhook["tags"]))),
        ("content", "yes" if webhook["content"] else "no"),
        ("state", _state(webhook)),
        ("because", escape(disabled["reason"]) if disabled else ""),
        ("waiting", str(webhook["pending"])),
        ("given up", str(webhook["failed"])),
        ("secret", webhook.get("secret") or ""),
    )
    return details(about)


def deliveries_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row a delivery."""
    return table(
        ("delivery", "event", "job", "state", "tries", "answer"),
        (
            (one["delivery_id"], one["type"], one["job_id"] or "", one["state"], str(one["attempts"]), _answer(one))
            for one in page["deliveries"]
        ),
        nothing="no deliveries",
    )


def delivery_line(delivery: dict[str, Any]) -> str:
    """Say what came of a delivery."""
    return f"{delivery['delivery_id']} is {delivery['state']}: {_answer(delivery)}"


def _state(webhook: dict[str, Any]) -> str:
    if not webhook["enabled"]:
        return "disabled"
    return f"failing since {webhook['failing_since'][:16]}" if webhook["failing_since"] else "enabled"


def _answer(delivery: dict[str, Any]) -> str:
    last = delivery["answers"][-1] if delivery["answers"] else None
    if last is None:
        return ""
    return escape(last["error"] or f"it answered {last['status']}")
