"""Deliveries in Postgres: claimed for a while, ended by the process that holds the claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

import orjson

from wayline.contracts.errors import Conflict, NotFound
from wayline.contracts.webhooks import (
    REDELIVERED_MAX,
    SHOWN_CHARS_MAX,
    Attempt,
    ListWebhookDeliveries,
    SentRequest,
    WebhookDelivery,
    WebhookDeliveryList,
)
from wayline.notifier.deliveries.retry_plan import DeliveryOutcome
from wayline.notifier.webhooks.webhook_table import Clock, address_in
from wayline.store import Record, Store

ANSWERS_KEPT_MAX = 10


@dataclass(frozen=True, slots=True)
class Shares:
    """How much may be sent at once."""

    per_webhook: int
    per_tenant: int


@dataclass(frozen=True)
class DeliveryTable:
    """The rows of deliveries."""

    store: Store
    clock: Clock
    shares: Shares
    claim_s: float
    """How long a claim holds: longer than a request, for the row that says what came of it."""

    async def next_due(self) -> datetime | None:
        """Return when the next delivery is due, or the next claim ends."""
        async with self.store.system() as conn:
            return await conn.fetchval(self.store.sql.next_due)

    async def claim(self, *, at_most: int) -> list[Record]:
        """Claim deliveries that are due, within the shares of webhooks and tenants."""
        now, claim = self.clock(), uuid4().hex
        async with self.store.system() as conn:
            # One at a time, over all processes: else two could together claim more than a share.
            await conn.execute(self.store.sql.lock_claims)
            values = (now, claim, self._until(now), self.shares.per_webhook, self.shares.per_tenant, at_most)
            return await conn.fetch(self.store.sql.claim_deliveries, *values)

    async def add_claimed(self, tenant: str, webhook: str, *, delivery_id: str, type_: str, body: str) -> Record:
        """Add a delivery that is tried once, claimed at once. Raises NotFound."""
        now, claim = self.clock(), uuid4().hex
        async with self.store.tenant(tenant) as conn:
            row = await conn.fetchrow(self.store.sql.get_webhook, tenant, webhook, 0)
            if row is None:
                raise NotFound("webhook", webhook)
            if address_in(row) is None:
                raise Conflict(f"the webhook {webhook!r} has no address of its own")
            values = (tenant, delivery_id, row["uid"], type_, body, now, self._until(now), claim)
            await conn.execute(self.store.sql.add_claimed_delivery, *values)
            claimed = await conn.fetchrow(self.store.sql.claimed_delivery, tenant, delivery_id, claim)
        assert claimed is not None
        return claimed

    async def end(self, row: Record, attempt: Attempt, outcome: DeliveryOutcome) -> bool:
        """Note what came of a try; return False where the claim was lost meanwhile, and nothing was noted."""
        state = "delivered" if outcome.delivered else "pending" if outcome.next_at else "failed"
        now, tenant = self.clock(), row["tenant"]
        answer = orjson.loads(attempt.model_dump_json())
        ended_at = None if state == "pending" else now
        due_at = outcome.next_at or row["due_at"]
        which = (tenant, row["id"], row["claim"])
        async with self.store.tenant(tenant) as conn:
            noted = await conn.fetchval(
                self.store.sql.end_attempt, *which, state, due_at, answer, outcome.reason, ended_at, ANSWERS_KEPT_MAX
            )
            if noted is not None and outcome.delivered:
                await conn.execute(self.store.sql.note_success, tenant, row["uid"])
        return noted is not None

    async def page(self, asked: ListWebhookDeliveries) -> WebhookDeliveryList:
        """Return a page of a webhook's deliveries, newest first, of each the beginning of its body."""
        values = (asked.tenant, asked.name, asked.state, asked.job_id, asked.before, asked.limit + 1)
        rows = await self.store.fetch(asked.tenant, self.store.sql.list_deliveries, *values)
        shown = rows[: asked.limit]
        more = shown[-1]["number"] if len(rows) > asked.limit else None
        return WebhookDeliveryList(deliveries=tuple(map(shortened, shown)), next_before=more)

    async def get(self, tenant: str, name: str, delivery_id: str) -> WebhookDelivery:
        """Return one delivery. Raises NotFound."""
        row = await self.store.fetchrow(tenant, self.store.sql.get_delivery, tenant, name, delivery_id)
        if row is None:
            raise NotFound("delivery", delivery_id)
        return view(row)

    async def redeliver_one(self, tenant: str, name: str, delivery_id: str) -> int:
        """Have a delivery tried again, and return how many that were: 0 where it is being sent at the moment."""
        now = self.clock()
        return _count(await self.store.execute(tenant, self.store.sql.redeliver_one, tenant, name, delivery_id, now))

    async def redeliver_failed(self, tenant: str, name: str, since: datetime | None) -> int:
        """Have some of the given-up deliveries tried again, the oldest first, and return how many that were."""
        values = (tenant, name, since, self.clock(), REDELIVERED_MAX)
        return _count(await self.store.execute(tenant, self.store.sql.redeliver_failed, *values))

    def _until(self, now: datetime) -> datetime:
        return now + timedelta(seconds=self.claim_s)


def view(row: Record) -> WebhookDelivery:
    """Return a delivery as it is shown."""
    answers: Sequence[object] = row["answers"]
    return WebhookDelivery(
        delivery_id=row["id"],
        webhook=row["name"],
        type=row["type"],
        state=row["state"],
        job_id=row["job_id"],
        occurred_at=row["occurred_at"],
        attempts=row["attempts"],
        # Of one that is being sent it is when its claim ends.
        next_at=row["due_at"] if row["state"] == "pending" and row["claim"] is None else None,
        reason=row["reason"],
        request=SentRequest(
            url=row["url"] or address_in(row) or "", headers={"webhook-id": row["id"]}, body=row["body"]
        ),
        answers=tuple(Attempt.model_validate(one) for one in answers),
    )


def shortened(row: Record) -> WebhookDelivery:
    """Return a delivery as a list shows it."""
    whole = view(row)
    request = whole.request.model_copy(update={"body": whole.request.body[:SHOWN_CHARS_MAX]})
    return whole.model_copy(update={"request": request, "answers": whole.answers[-1:]})


def _count(status: str) -> int:
    return int(status.rpartition(" ")[2])
