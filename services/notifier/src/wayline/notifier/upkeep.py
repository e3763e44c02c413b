"""What the notifier does every so often: forget old deliveries, disable overfull webhooks, use the newest key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from wayline.notifier.deliveries.failing_webhooks import FailingWebhooks
from wayline.notifier.webhooks.webhook_table import Clock, WebhookTable
from wayline.store import Store

FORGOTTEN_AT_ONCE = 5_000
"""Rows of one transaction."""


@dataclass(frozen=True)
class Upkeep:
    """One round after the other; any process may do it, and several at once."""

    store: Store
    webhooks: WebhookTable
    failing: FailingWebhooks
    clock: Clock
    keep: timedelta

    async def run(self) -> None:
        """Do one round."""
        await self.failing.disable_overfull()
        await self._forget()
        await self.webhooks.seal_again()

    async def _forget(self) -> None:
        before = self.clock() - self.keep
        while True:
            async with self.store.system() as conn:
                status = await conn.execute(self.store.sql.forget_deliveries, before, FORGOTTEN_AT_ONCE)
            if int(status.rpartition(" ")[2]) < FORGOTTEN_AT_ONCE:
                return
