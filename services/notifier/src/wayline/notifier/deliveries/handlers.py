"""Answers requests about deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_hex

from wayline.contracts.errors import Conflict
from wayline.contracts.forgetting import Erased, EraseFromNotifier
from wayline.contracts.webhooks import (
    JOBS,
    REDELIVERED_MAX,
    TEST_EVENT,
    GetWebhookDelivery,
    ListWebhookDeliveries,
    Redeliver,
    Redelivered,
    TestWebhook,
    WebhookDelivery,
    WebhookDeliveryList,
)
from wayline.notifier.deliveries.delivery_table import DeliveryTable
from wayline.notifier.deliveries.sender import Sender
from wayline.notifier.events.bodies import body_of
from wayline.notifier.events.event import Event
from wayline.notifier.webhooks.webhook_table import WebhookTable
from wayline.store import Store


@dataclass(frozen=True)
class DeliveryHandlers:
    """One coroutine a request."""

    webhooks: WebhookTable
    table: DeliveryTable
    sender: Sender

    async def on_list(self, request: ListWebhookDeliveries) -> WebhookDeliveryList:
        """Return a page of a webhook's deliveries. Raises NotFound."""
        await self.webhooks.get(request.tenant, request.name)
        return await self.table.page(request)

    async def on_get(self, request: GetWebhookDelivery) -> WebhookDelivery:
        """Return one delivery with its whole body. Raises NotFound."""
        return await self.table.get(request.tenant, request.name, request.delivery_id)

    async def on_test(self, request: TestWebhook) -> WebhookDelivery:
        """Send a test event once, also to a disabled webhook, and return what was answered. Raises NotFound."""
        tenant, name = request.tenant, request.name
        event = Event(tenant, token_hex(16), TEST_EVENT, self.table.clock(), {"webhook": name})
        body = body_of(event, content=False, public_url=None)
        delivery_id = f"msg_{event.key}"
        row = await self.table.add_claimed(tenant, name, delivery_id=delivery_id, type_=TEST_EVENT, body=body)
        await self.sender.deliver(row)
        return await self.table.get(tenant, name, delivery_id)

    async def on_redeliver(self, request: Redeliver) -> Redelivered:
        """Have one delivery tried again, or those that were given up. Raises NotFound, and Conflict if disabled."""
        tenant, name = request.tenant, request.name
        webhook = await self.webhooks.get(tenant, name)
        if not webhook.enabled and name != JOBS:
            raise Conflict(f"the webhook {name!r} is disabled: enable it first", code="webhook_disabled")
        if request.delivery_id is not None:
            await self.table.get(tenant, name, request.delivery_id)
            count = await self.table.redeliver_one(tenant, name, request.delivery_id)
        else:
            count = await self.table.redeliver_failed(tenant, name, request.since)
        self.sender.wake()
        return Redelivered(deliveries=count, more=request.delivery_id is None and count == REDELIVERED_MAX)


class Eraser:
    """Counts and erases what deliveries hold of users and jobs, in one transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def on_erase(self, asked: EraseFromNotifier) -> Erased:
        """Erase the deliveries of a user or of jobs, and say how many there were."""
        sql, who = self._store.sql, (asked.tenant, asked.user_id, list(asked.job_ids))
        kept: dict[str, int] = {}
        async with self._store.tenant(asked.tenant) as conn:
            counts = await conn.fetchrow(sql.count_erasable, *who)
            assert counts is not None
            if asked.samples:
                same_words = await conn.fetchval(sql.rows_with_samples, asked.tenant, list(asked.samples))
                kept["deliveries_with_the_same_words"] = same_words
            if not asked.count_only:
                await conn.execute(sql.erase_deliveries, *who)
        return Erased(counts=_some(dict(counts)), kept=_some(kept))


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}
