"""Webhooks: where a tenant is told what happens, and what was sent there."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Path, Query, Response
from pydantic import AwareDatetime, Field

from wayline.contracts import ids
from wayline.contracts.webhooks import (
    DELIVERIES_SHOWN_MAX,
    DELIVERY_ID_PATTERN,
    DeleteWebhook,
    DeliveryState,
    GetWebhook,
    GetWebhookDelivery,
    ListWebhookDeliveries,
    ListWebhooks,
    PutWebhook,
    Redeliver,
    Redelivered,
    RotateWebhook,
    SavedWebhook,
    TestWebhook,
    Webhook,
    WebhookConfig,
    WebhookDeleted,
    WebhookDelivery,
    WebhookDeliveryList,
    WebhookList,
)
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.errors import Forbidden
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, WebhookKeeper
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.paging import PageCursor, Paged, after_name, after_number, cursor_of
from wayline.gateway.shapes.body import Body
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=StrictRoute)

TEST_WITHIN_S: Final = 90.0
"""How long the answer to a test event is waited for: longer than the notifier waits for the receiver."""

WebhookPath: TypeAlias = Annotated[str, Path(pattern=ids.NAME_PATTERN, examples=["crm"])]
DeliveryPath: TypeAlias = Annotated[str, Path(pattern=DELIVERY_ID_PATTERN)]


class WebhookPage(Paged):
    """A page of webhooks by name."""

    webhooks: tuple[Webhook, ...]


class DeliveryPage(Paged):
    """A page of deliveries, newest first."""

    deliveries: tuple[WebhookDelivery, ...]


class RedeliverBody(Body):
    """Which of the deliveries that were given up are sent again."""

    since: AwareDatetime | None = Field(default=None, description="Those of events since then; null: all.")


@router.get("", responses=fails(400))
async def list_webhooks(
    gateway: GatewayDependency,
    caller: WebhookKeeper,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: PageCursor = None,
) -> WebhookPage:
    """Page through the webhooks, by name, without their secrets."""
    after = after_name(cursor)
    found = await gateway.bus.ask(ListWebhooks(tenant=_tenant(caller), limit=limit, after=after), WebhookList)
    more = None if found.next_after is None else cursor_of(found.next_after)
    return WebhookPage(webhooks=found.webhooks, next_cursor=more)


@router.get("/{name}", responses=tags(404))
async def get_webhook(
    name: WebhookPath, gateway: GatewayDependency, caller: WebhookKeeper, response: Response
) -> Webhook:
    """Return a webhook: whether it is enabled, since when it fails, how many deliveries wait or were given up."""
    found = await _webhook(gateway, caller, name)
    return tagged(response, found, _tag(found))


@router.post("/{name}", status_code=201, responses=fails(404, 409))
async def create_webhook(
    name: WebhookPath, config: WebhookConfig, gateway: GatewayDependency, caller: WebhookKeeper, response: Response
) -> SavedWebhook:
    """Create a webhook; its secret is in this answer and in no other. 409: there is one of this name."""
    asked = PutWebhook(tenant=_tenant(caller), name=name, config=config, create=True)
    async with WEBHOOK.changing(gateway, caller, name):
        created = await gateway.bus.ask(asked, SavedWebhook)
    return tagged(response, created, _tag(created))


@router.put("/{name}", responses=tags(404, 409, 412))
async def put_webhook(
    *,
    name: WebhookPath,
    config: WebhookConfig,
    gateway: GatewayDependency,
    caller: WebhookKeeper,
    condition: IfUnchanged,
    response: Response,
) -> SavedWebhook:
    """Save a webhook: a new one is answered with its secret, the same again changes nothing.

    One that its failures disabled is enabled again.
    """
    async with WEBHOOK.changing(gateway, caller, name, condition):
        asked = PutWebhook(tenant=_tenant(caller), name=name, config=config)
        saved = await gateway.bus.ask(asked, SavedWebhook)
    return tagged(response, saved, _tag(saved))


@router.delete("/{name}", responses=fails(404, 409, 412))
async def delete_webhook(
    name: WebhookPath, gateway: GatewayDependency, caller: WebhookKeeper, condition: IfUnchanged
) -> WebhookDeleted:
    """Delete a webhook with its secrets and its deliveries; what is being sent is sent."""
    async with WEBHOOK.changing(gateway, caller, name, condition):
        deleted = await gateway.bus.ask(DeleteWebhook(tenant=_tenant(caller), name=name), WebhookDeleted)
    return was_there(deleted, "webhook", name)


@router.post("/{name}/rotate", responses=fails(404, 409))
async def rotate_webhook(name: WebhookPath, gateway: GatewayDependency, caller: WebhookKeeper) -> SavedWebhook:
    """Give a webhook a new secret, which is in this answer and in no other. For a day both secrets sign."""
    async with WEBHOOK.changing(gateway, caller, name):
        return await gateway.bus.ask(RotateWebhook(tenant=_tenant(caller), name=name), SavedWebhook)


@router.post("/{name}/test", responses=fails(404, 409))
async def test_webhook(name: WebhookPath, gateway: GatewayDependency, caller: WebhookKeeper) -> WebhookDelivery:
    """Send a test event once, also to a disabled webhook, and return what was answered."""
    asked = TestWebhook(tenant=_tenant(caller), name=name)
    return await gateway.bus.ask(asked, WebhookDelivery, timeout_s=TEST_WITHIN_S)


@router.get("/{name}/deliveries", responses=fails(400, 404))
async def list_webhook_deliveries(
    *,
    name: WebhookPath,
    gateway: GatewayDependency,
    caller: WebhookKeeper,
    state: Annotated[DeliveryState | None, Query(alias="status")] = None,
    job_id: Annotated[str | None, Query(pattern=ids.JOB_ID_PATTERN)] = None,
    limit: Annotated[int, Query(ge=1, le=DELIVERIES_SHOWN_MAX)] = 20,
    cursor: PageCursor = None,
) -> DeliveryPage:
    """Page through the deliveries, newest first: of each the beginning of its body, and the last answer."""
    before = None if cursor is None else after_number(cursor)
    asked = ListWebhookDeliveries(
        tenant=_tenant(caller), name=name, state=state, job_id=job_id, limit=limit, before=before
    )
    found = await gateway.bus.ask(asked, WebhookDeliveryList)
    more = None if found.next_before is None else cursor_of(str(found.next_before))
    return DeliveryPage(deliveries=found.deliveries, next_cursor=more)


@router.get("/{name}/deliveries/{delivery_id}", responses=fails(404))
async def get_webhook_delivery(
    name: WebhookPath, delivery_id: DeliveryPath, gateway: GatewayDependency, caller: WebhookKeeper
) -> WebhookDelivery:
    """Return one delivery: its whole request, and the last ten answers."""
    asked = GetWebhookDelivery(tenant=_tenant(caller), name=name, delivery_id=delivery_id)
    return await gateway.bus.ask(asked, WebhookDelivery)


@router.post("/{name}/deliveries/{delivery_id}/redeliver", responses=fails(404, 409))
async def redeliver_webhook_delivery(
    name: WebhookPath, delivery_id: DeliveryPath, gateway: GatewayDependency, caller: WebhookKeeper
) -> Redelivered:
    """Send one delivery again under its id, whatever became of it; one that is being sent now is left alone."""
    asked = Redeliver(tenant=_tenant(caller), name=name, delivery_id=delivery_id)
    return await gateway.bus.ask(asked, Redelivered)


@router.post("/{name}/redeliver", responses=fails(404, 409))
async def redeliver_webhook(
    name: WebhookPath, body: RedeliverBody, gateway: GatewayDependency, caller: WebhookKeeper
) -> Redelivered:
    """Send again what was given up, oldest first and at most 1,000 deliveries; `more`: there are others."""
    since: datetime | None = body.since
    return await gateway.bus.ask(Redeliver(tenant=_tenant(caller), name=name, since=since), Redelivered)


def _tenant(caller: Caller) -> str:
    """Return the tenant of a caller that may hear of all its users. Raises Forbidden."""
    if caller.user_id is not None:
        raise Forbidden(f"this API key acts for user {caller.user_id!r}: webhooks tell of all users of the tenant")
    return caller.tenant


def _tag(webhook: Webhook) -> str:
    # Its version counts rotations as well, which change nothing that a PUT could overwrite.
    saved = webhook.model_dump(mode="json", include={*WebhookConfig.model_fields, "name", "created_at"})
    return entity_tag(saved)


async def _webhook(gateway: Gateway, caller: Caller, name: str) -> Webhook:
    return await gateway.bus.ask(GetWebhook(tenant=_tenant(caller), name=name), Webhook)


WEBHOOK = Changeable("webhook", _webhook, _tag)
