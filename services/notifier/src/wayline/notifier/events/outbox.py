"""Makes deliveries of events: one row an event and webhook, whatever is read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from wayline.contracts.jobs.job_webhook import JobWebhook
from wayline.contracts.webhooks import JOBS, WebhookConfig
from wayline.notifier.events.bodies import body_of
from wayline.notifier.events.event import Event, delivery_id, wants
from wayline.notifier.webhooks.webhook_table import WebhookTable, read_config
from wayline.store import Connection

JobKey = tuple[str, str]
"""A tenant and a job of it."""


class Subscription(NamedTuple):
    """A webhook that may want events of its tenant."""

    name: str
    uid: str
    config: WebhookConfig | None
    """None: of the webhook of jobs, which wants nothing by itself."""
    since: datetime


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """All webhooks that may want events of some tenants, as they are now."""

    of_tenants: Mapping[str, Sequence[Subscription]] = field(default_factory=dict)

    def named(self, tenant: str, name: str) -> Subscription | None:
        """Return a tenant's webhook, where it is enabled."""
        return next((one for one in self.of_tenants.get(tenant, ()) if one.name == name), None)

    def wants_any(self, tenant: str) -> bool:
        """Return whether a tenant has a webhook that wants events by itself."""
        return any(one.config is not None for one in self.of_tenants.get(tenant, ()))


@dataclass(frozen=True)
class Outbox:
    """Adds deliveries."""

    table: WebhookTable
    public_url: str | None
    added: Callable[[], None]
    """Says that there is something to send."""

    async def subscriptions(self, conn: Connection, tenants: Iterable[str]) -> Subscriptions:
        """Return the webhooks of tenants, read now: an event is not told to those that it does not know."""
        rows = await conn.fetch(self.table.store.sql.subscriptions, sorted(set(tenants)))
        found: dict[str, list[Subscription]] = {}
        for row in rows:
            config = None if row["name"] == JOBS else read_config(row)
            one = Subscription(row["name"], row["uid"], config, row["created_at"])
            found.setdefault(row["tenant"], []).append(one)
        return Subscriptions(found)

    async def add(
        self,
        conn: Connection,
        events: Iterable[Event],
        subscriptions: Subscriptions,
        of_jobs: Mapping[JobKey, JobWebhook],
    ) -> None:
        """Add the deliveries of events, within a transaction."""
        rows = [row for event in events for row in self._rows(event, subscriptions, of_jobs)]
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            await conn.execute(self.table.store.sql.add_deliveries, *columns, self.table.clock())

    def _rows(
        self, event: Event, subscriptions: Subscriptions, of_jobs: Mapping[JobKey, JobWebhook]
    ) -> list[tuple[Any, ...]]:
        uids: set[str] = set()
        rows: list[tuple[Any, ...]] = []
        own = of_jobs.get((event.tenant, event.job_id)) if event.job_id is not None else None
        if own is not None and event.type in own.events:
            to = subscriptions.named(event.tenant, JOBS if own.name is None else own.name)
            if to is not None:
                uids.add(to.uid)
                rows.append(self._row(event, to.uid, url=own.url, content=own.content))
        for one in subscriptions.of_tenants.get(event.tenant, ()):
            if one.config is None or one.uid in uids or event.at < one.since or not wants(one.config, event):
                continue
            rows.append(self._row(event, one.uid, url=None, content=one.config.content))
        return rows

    def _row(self, event: Event, uid: str, *, url: str | None, content: bool) -> tuple[Any, ...]:
        body = body_of(event, content=content, public_url=self.public_url)
        made = delivery_id(event, uid=uid, url=url)
        return (event.tenant, made, uid, event.type, event.job_id, event.user_id, url, body, event.at)
