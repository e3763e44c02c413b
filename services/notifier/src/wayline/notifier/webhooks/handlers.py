"""Answers requests about webhooks."""

from __future__ import annotations

from dataclasses import dataclass

from wayline.contracts.webhooks import (
    DeleteWebhook,
    GetWebhook,
    ListWebhooks,
    PutWebhook,
    RotateWebhook,
    SavedWebhook,
    Webhook,
    WebhookDeleted,
    WebhookList,
)
from wayline.notifier.webhooks.webhook_table import WebhookTable


@dataclass(frozen=True)
class WebhookHandlers:
    """One coroutine a request."""

    table: WebhookTable

    async def on_put(self, request: PutWebhook) -> SavedWebhook:
        """Save a webhook; a new one is answered with its secret."""
        return await self.table.put(request.tenant, request.name, request.config, create=request.create)

    async def on_get(self, request: GetWebhook) -> Webhook:
        """Return a webhook."""
        return await self.table.get(request.tenant, request.name)

    async def on_list(self, request: ListWebhooks) -> WebhookList:
        """Return a page of a tenant's webhooks."""
        return await self.table.list(request.tenant, after=request.after, limit=request.limit)

    async def on_delete(self, request: DeleteWebhook) -> WebhookDeleted:
        """Delete a webhook with its secrets and deliveries."""
        return WebhookDeleted(deleted=await self.table.delete(request.tenant, request.name))

    async def on_rotate(self, request: RotateWebhook) -> SavedWebhook:
        """Give a webhook a new secret, which is answered this once."""
        return await self.table.rotate(request.tenant, request.name)
