"""The events of notices and dead letters. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from wayline.contracts import headers as h
from wayline.contracts.notices import BudgetAlerted, ToolChanged
from wayline.notifier.events.event import Event

LETTERS_OF = "WEBHOOKS"
"""What a dead letter of a delivery says in the place of a stream."""


def budget_event(notice: BudgetAlerted) -> Event:
    """Return the event of a budget that has reached a threshold."""
    data = {
        "budget": notice.budget,
        "threshold": str(notice.threshold),
        "used_usd": str(notice.used_usd),
        "limit_usd": str(notice.limit_usd),
        "window_starts_at": notice.starts_at,
    }
    links = {"budget": f"/v1/budgets/{notice.budget}"}
    return Event(notice.tenant, notice.msg_id, "budget.alert", notice.at, data, links=links)


def tool_event(notice: ToolChanged) -> Event:
    """Return the event of a tool that waits for approval because its server offers another definition."""
    data = {"server": notice.server, "tool": notice.tool or None, "definition_sha256": notice.definition_sha256}
    links = {"server": f"/v1/mcp/servers/{notice.server}"}
    return Event(notice.tenant, notice.msg_id, "tool.changed", notice.at, data, links=links)


def letter_event(tenant: str, sequence: int, at: datetime, headers: Mapping[str, str]) -> Event | None:
    """Return the event of a dead letter; None for one of a delivery, which would be told of by the next delivery."""
    if headers.get(h.DEAD_STREAM) == LETTERS_OF:
        return None
    data = {
        "sequence": sequence,
        "stream": headers.get(h.DEAD_STREAM, ""),
        "consumer": headers.get(h.DEAD_CONSUMER, ""),
        "code": headers.get(h.DEAD_CODE, ""),
    }
    content = {"reason": headers.get(h.DEAD_REASON, "")}
    # A stream that is made anew counts from 1.
    key = f"{sequence}/{at.timestamp()}"
    links = {"dead_letter": f"/v1/dead-letters/{sequence}"}
    return Event(tenant, key, "dead_letter.created", at, data, content, links)
