"""Reads notices and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import structlog
from nats.aio.msg import Msg

from wayline.chassis import Bus, Delivery
from wayline.contracts import headers as h
from wayline.contracts.errors import Reject
from wayline.contracts.ids import is_tenant
from wayline.contracts.notices import BudgetAlerted, JobNamedWebhook, ToolChanged
from wayline.notifier.events.event import Event
from wayline.notifier.events.noticed_events import budget_event, letter_event, tool_event
from wayline.notifier.events.outbox import Outbox

log = structlog.get_logger()

NANOSECONDS = 1_000_000_000


class Notices:
    """Turns notices and dead letters into deliveries."""

    def __init__(self, bus: Bus, outbox: Outbox) -> None:
        self._bus = bus
        self._outbox = outbox

    async def read(self, message: Msg) -> Event | None:
        """Read a notice; None: it is no event, or of a kind that this build does not know. Raises InvalidMessage."""
        kind = message.subject.split(".")[1]
        if kind == "budget":
            return budget_event(await self._bus.hear(BudgetAlerted, message))
        if kind == "tool":
            return tool_event(await self._bus.hear(ToolChanged, message))
        if kind == "webhook":
            await self._require_jobs(await self._bus.hear(JobNamedWebhook, message))
        return None

    async def _require_jobs(self, notice: JobNamedWebhook) -> None:
        """See to it that records are read from now on, because there is a webhook."""
        try:
            await self._outbox.table.require_jobs(notice.tenant)
        except Reject as error:
            why = {"tenant": notice.tenant, "job": notice.job_id, "why": str(error)}
            log.error("a job's webhook cannot be signed", **why)

    async def read_letter(self, message: Msg) -> Event | None:
        """Read the headers of a dead letter; None: nobody is told of it."""
        headers = message.headers or {}
        tenant = headers.get(h.TENANT, "")
        if not is_tenant(tenant):
            return None
        delivery = Delivery.of(message)
        at = datetime.fromtimestamp(delivery.stored_ns / NANOSECONDS, UTC)
        return letter_event(tenant, delivery.sequence, at, headers)

    async def store(self, events: Sequence[Event]) -> None:
        """Add the deliveries of events."""
        async with self._outbox.table.store.system() as conn:
            subscriptions = await self._outbox.subscriptions(conn, (event.tenant for event in events))
            await self._outbox.add(conn, events, subscriptions, {})
        self._outbox.added()
