"""Disables webhooks that fail for days, whose receiver has gone, or for which too much waits; and says so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import orjson
import structlog

from wayline.chassis import Bus, Delivery
from wayline.contracts.webhooks import JOBS
from wayline.notifier.events.noticed_events import LETTERS_OF
from wayline.notifier.webhooks.webhook_table import Clock
from wayline.store import Record, Store
from wayline.telemetry import metrics

log = structlog.get_logger()

GIVEN_UP = "webhook_failed"
DISABLED = "webhook_disabled"


@dataclass(frozen=True)
class FailingWebhooks:
    """Gives deliveries up, and webhooks."""

    bus: Bus
    store: Store
    clock: Clock
    failing_max: timedelta
    pending_max: int

    async def after_failure(self, row: Record, *, is_gone: bool) -> None:
        """Disable a delivery's webhook where it has failed for too long, or its receiver wants no more."""
        if row["name"] == JOBS:
            # Many addresses: one of them says nothing about the others.
            return
        if is_gone:
            await self.disable(row["tenant"], row["uid"], "its receiver answered 410: it wants no more")
            return
        tenant, now = row["tenant"], self.clock()
        state = await self.store.fetchrow(tenant, self.store.sql.note_failure, tenant, row["uid"], now)
        if state is not None and state["enabled"] and now - state["failing_since"] >= self.failing_max:
            days = self.failing_max / timedelta(days=1)
            await self.disable(tenant, row["uid"], f"every try has failed for {days:g} days")

    async def disable_overfull(self) -> None:
        """Disable the webhooks for which more deliveries wait than may."""
        async with self.store.system() as conn:
            rows = await conn.fetch(self.store.sql.too_many_pending, self.pending_max)
        for row in rows:
            await self.disable(row["tenant"], row["uid"], f"more than {self.pending_max} deliveries waited for it")

    async def disable(self, tenant: str, uid: str, reason: str) -> None:
        """Disable a webhook, once: its deliveries are given up, and a dead letter says why."""
        now = self.clock()
        async with self.store.tenant(tenant) as conn:
            name = await conn.fetchval(self.store.sql.disable_webhook, tenant, uid, now, reason)
            given_up = f"its webhook was disabled: {reason}"
            await conn.execute(self.store.sql.give_up_deliveries, tenant, uid, now, given_up)
            if name is None:
                return
            # Within the transaction: a webhook is not disabled without a word.
            body = {"webhook": name, "reason": reason, "at": now}
            await self._letter(
                tenant, name, number=int(now.timestamp() * 1_000), code=DISABLED, reason=reason, body=body
            )
        metrics.webhooks_disabled.inc()
        log.warning("webhook disabled", tenant=tenant, webhook=name, why=reason)

    async def give_up(self, row: Record, reason: str) -> None:
        """Put a delivery aside: it stays in its table, and can be sent again from there."""
        body = {"webhook": row["name"], "delivery_id": row["id"], "type": row["type"], "job_id": row["job_id"]}
        await self._letter(row["tenant"], row["name"], number=row["number"], code=GIVEN_UP, reason=reason, body=body)

    async def _letter(
        self, tenant: str, name: str, *, number: int, code: str, reason: str, body: dict[str, object]
    ) -> None:
        letter = Delivery(
            stream=LETTERS_OF,
            consumer=name,
            sequence=number,
            deliveries=1,
            subject=f"webhooks.redeliver.{tenant}",
            body=orjson.dumps(body),
        )
        await self.bus.put_aside(letter, code=code, reason=reason)
