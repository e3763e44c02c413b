"""What happened, as webhooks are told of it, and which webhook wants to know. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from wayline.contracts.webhooks import WebhookConfig


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, once."""

    tenant: str
    key: str
    """What tells it from every other event of its tenant, however often it is read."""
    type: str
    at: datetime
    data: Mapping[str, Any]
    content: Mapping[str, Any] = field(default_factory=dict)
    """Words, which only webhooks are sent that ask for them."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Paths of the gateway."""
    job_id: str | None = None
    user_id: str | None = None
    agent: str | None = None
    tags: tuple[str, ...] = ()


def delivery_id(event: Event, *, uid: str, url: str | None = None) -> str:
    """Return the one id of an event's delivery to a webhook; `url`: that of a job of its own."""
    parts = "\0".join((event.tenant, uid, event.type, event.key, url or ""))
    return f"msg_{sha256(parts.encode()).hexdigest()[:32]}"


def wants(webhook: WebhookConfig, event: Event) -> bool:
    """Return whether a webhook is sent an event; its filters are of jobs, and let other events pass."""
    if event.type not in webhook.events:
        return False
    if event.job_id is None:
        return True
    if webhook.agents and event.agent not in webhook.agents:
        return False
    return not webhook.tags or not set(webhook.tags).isdisjoint(event.tags)
