"""Webhooks: requests that Wayline sends to addresses of a tenant when something happens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import ConfigDict, Field, StringConstraints

from wayline.contracts.base import Frozen, Request
from wayline.contracts.ids import NAME_PATTERN, JobId, Name
from wayline.contracts.jobs import Tag
from wayline.contracts.jobs.job_webhook import HttpAddress

EventType = Literal[
    "job.completed",
    "job.failed",
    "job.cancelled",
    "job.parked",
    "approval.requested",
    "budget.alert",
    "dead_letter.created",
    "tool.changed",
]
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
TEST_EVENT = "webhook.test"
JOBS = "jobs"
"""The name under which the addresses that jobs name themselves are kept: one secret signs for all of them."""
AGENTS_MAX = 50
DELIVERIES_SHOWN_MAX = 50
BODY_MAX_BYTES = 20 * 1024
"""Of a request to a receiver."""
SHOWN_CHARS_MAX = 2_000
"""Of a receiver's answer, and of a request's body in a list."""
REDELIVERED_MAX = 1_000
"""Deliveries that one request sends again."""
DELIVERY_ID_PATTERN = r"^msg_[0-9a-f]{32}$"

DeliveryId = Annotated[str, StringConstraints(pattern=DELIVERY_ID_PATTERN)]
DeliveryState = Literal["pending", "delivered", "failed"]
AgentName: TypeAlias = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


class WebhookConfig(Frozen):
    """Where which events are sent."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [{"url": "https://crm.example/hooks/wayline", "events": ["job.completed", "job.failed"]}]
        },
    )

    url: HttpAddress = Field(description="A public address, `https` if possible; redirects are not followed.")
    events: tuple[EventType, ...] = Field(
        default=EVENT_TYPES, min_length=1, max_length=len(EVENT_TYPES), description="Which events; all unless given."
    )
    agents: tuple[AgentName, ...] = Field(
        default=(), max_length=AGENTS_MAX, description="Only events of jobs of these agents; empty: of all."
    )
    tags: tuple[Tag, ...] = Field(
        default=(), max_length=AGENTS_MAX, description="Only events of jobs with one of these tags; empty: of all."
    )
    content: bool = Field(
        default=False,
        description="Send words as well: the beginning of answers, error messages, arguments of calls that wait. "
        "Without it a body holds ids, codes, figures and links.",
    )
    description: str = Field(default="", max_length=200)
    enabled: bool = Field(default=True, description="A disabled one is sent nothing, and events do not wait for it.")


class Disabled(Frozen):
    """When and why a webhook was disabled without anybody asking for it."""

    at: datetime
    reason: str


class Webhook(Frozen):
    """A webhook as it is shown; its secret is not."""

    name: str
    version: int = Field(description="It counts changes.")
    url: str | None = Field(description="None: of `jobs`, whose addresses jobs name themselves.")
    events: tuple[str, ...]
    agents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    content: bool = False
    description: str = ""
    enabled: bool
    disabled: Disabled | None = Field(default=None, description="Set where its failures disabled it.")
    failing_since: datetime | None = Field(
        default=None, description="The first failure since its last success; five days later it is disabled."
    )
    former_secret_until: datetime | None = Field(
        default=None, description="Until then the secret before the last rotation signs as well."
    )
    pending: int = Field(default=0, description="Deliveries that wait for their first or next try.")
    failed: int = Field(default=0, description="Deliveries that were given up, and can be sent again.")
    created_at: datetime
    updated_at: datetime


class WebhookList(Frozen):
    """Webhooks by name."""

    webhooks: tuple[Webhook, ...]
    next_after: str | None = Field(default=None, description="The `after` of the next page; null: there is none.")


class SavedWebhook(Webhook):
    """A webhook as it was saved, and its secret where that is new: it is shown this once."""

    secret: str | None = Field(
        default=None,
        description="`whsec_…`, with which receivers verify the signatures; null: it is the one that was shown before.",
    )


class WebhookDeleted(Frozen):
    """Whether there was such a webhook."""

    deleted: bool


class Attempt(Frozen):
    """One try of a delivery, and what was answered."""

    at: datetime
    status: int | None = Field(default=None, description="Of the answer; None: there was none.")
    error: str | None = Field(default=None, description="Why it failed.")
    body: str = Field(default="", description=f"The first {SHOWN_CHARS_MAX:,} characters of the answer.")
    duration_ms: float = 0.0


class SentRequest(Frozen):
    """What is sent; the signature is made anew at each try."""

    url: str
    headers: dict[str, str] = Field(default_factory=dict)
    body: str = Field(description="As it is signed; in a list its beginning.")


class WebhookDelivery(Frozen):
    """One event for one webhook; its id is the `webhook-id` of every try."""

    delivery_id: str
    webhook: str
    type: str = Field(description="Of the event.")
    state: DeliveryState
    job_id: str | None = None
    occurred_at: datetime
    attempts: int = Field(description="Tries since it was made or sent again.")
    next_at: datetime | None = Field(
        default=None, description="When it is tried next, while it is pending; none while it is being sent."
    )
    reason: str = Field(default="", description="Why it was given up.")
    request: SentRequest
    answers: tuple[Attempt, ...] = Field(default=(), description="The last tries, oldest first.")


class WebhookDeliveryList(Frozen):
    """Deliveries of a webhook, newest first."""

    deliveries: tuple[WebhookDelivery, ...]
    next_before: int | None = Field(default=None, description="The `before` of the next page; null: there is none.")


class Redelivered(Frozen):
    """How many deliveries are sent again."""

    deliveries: int
    more: bool = Field(default=False, description="There are others of which the same is true: ask again.")


class PutWebhook(Request, subject="webhooks.put.{tenant}", replies=SavedWebhook):
    """Save a webhook; a new one gets a secret. The same again changes nothing."""

    terse = True

    name: Name
    config: WebhookConfig
    create: bool = Field(default=False, description="Refuse where there is one of this name.")


class GetWebhook(Request, subject="webhooks.get.{tenant}", replies=Webhook):
    """Ask for a webhook."""

    name: Name


class ListWebhooks(Request, subject="webhooks.list.{tenant}", replies=WebhookList):
    """Page through a tenant's webhooks, by name."""

    limit: int = Field(default=50, ge=1, le=200)
    after: str = Field(default="", max_length=64, description="Only webhooks whose name is greater.")


class DeleteWebhook(Request, subject="webhooks.delete.{tenant}", replies=WebhookDeleted):
    """Delete a webhook with its secrets and its deliveries."""

    name: Name


class RotateWebhook(Request, subject="webhooks.rotate.{tenant}", replies=SavedWebhook):
    """Give a webhook a new secret; the one before signs beside it for a day."""

    name: Name


class TestWebhook(Request, subject="webhooks.test.{tenant}", replies=WebhookDelivery):
    """Send a test event once, and return what was answered."""

    __test__ = False
    name: Name


class ListWebhookDeliveries(Request, subject="webhooks.deliveries.{tenant}", replies=WebhookDeliveryList):
    """Page through a webhook's deliveries, newest first."""

    name: Name
    state: DeliveryState | None = None
    job_id: JobId | None = None
    limit: int = Field(default=20, ge=1, le=DELIVERIES_SHOWN_MAX)
    before: int | None = Field(default=None, ge=1)


class GetWebhookDelivery(Request, subject="webhooks.delivery.{tenant}", replies=WebhookDelivery):
    """Ask for one delivery with its whole body."""

    name: Name
    delivery_id: DeliveryId


class Redeliver(Request, subject="webhooks.redeliver.{tenant}", replies=Redelivered):
    """Send deliveries again under their ids: one, or those that were given up since a moment."""

    name: Name
    delivery_id: DeliveryId | None = None
    since: datetime | None = Field(default=None, description="Of given-up deliveries those of events since then.")
