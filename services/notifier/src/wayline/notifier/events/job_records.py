"""Reads the records of all logs, of nearly all of them the headers alone.

A record's header says whether its job has parked or ended, and whether it names a webhook itself. Only where a
webhook wants to know is the record itself read, and its job's first one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import structlog
from nats.aio.msg import Msg

from wayline.chassis import Bus, stored_at
from wayline.contracts.errors import Reject, Unavailable
from wayline.contracts.events import JobSubmitted
from wayline.contracts.jobs.job_webhook import JobWebhook
from wayline.journal import JobLog
from wayline.journal.record import State, header_fields, is_record
from wayline.notifier.events.event import Event
from wayline.notifier.events.job_events import events_of
from wayline.notifier.events.outbox import JobKey, Outbox

log = structlog.get_logger()

LOGS_READ_BESIDE = 16
TOLD = (State.PARKED, State.ENDED)


class Noted(NamedTuple):
    """A record that may be of interest."""

    tenant: str
    job_id: str
    sequence: int
    names_webhook: bool

    @property
    def job(self) -> JobKey:
        return self.tenant, self.job_id


class JobRecords:
    """Turns records of logs into deliveries."""

    def __init__(self, bus: Bus, outbox: Outbox) -> None:
        self._bus = bus
        self._outbox = outbox
        self._reading = asyncio.Semaphore(LOGS_READ_BESIDE)

    async def read(self, message: Msg) -> Noted | None:
        """Read a record's header; None: nobody is told of it."""
        if not is_record(message.headers):
            return None
        fields = header_fields(message.headers or {})
        if State(fields["state"]) not in TOLD:
            return None
        _, tenant, job_id = message.subject.split(".")
        return Noted(tenant, job_id, stored_at(message), "webhook" in fields)

    async def store(self, noted: Sequence[Noted]) -> None:
        """Add the deliveries of records, all or none."""
        table = self._outbox.table
        of_jobs = await self._webhooks_of_jobs(one for one in noted if one.names_webhook)
        async with table.store.system() as conn:
            subscriptions = await self._outbox.subscriptions(conn, (one.tenant for one in noted))
        wanted = [one for one in noted if one.job in of_jobs or subscriptions.wants_any(one.tenant)]
        # Without a connection while logs are read. What was seen of the webhooks holds: one that is created meanwhile
        # is told of later events.
        events = [event for found in await asyncio.gather(*map(self._events, wanted)) for event in found]
        if not events:
            return
        async with table.store.system() as conn:
            await self._outbox.add(conn, events, subscriptions, of_jobs)
        self._outbox.added()

    async def _webhooks_of_jobs(self, noted: Iterable[Noted]) -> dict[JobKey, JobWebhook]:
        """Return what jobs say of their own webhooks, and see to it that those with an address can be signed."""
        found: dict[JobKey, JobWebhook] = {}
        for one in noted:
            submitted = await self._submitted(one)
            webhook = submitted.job.options.webhook if submitted is not None else None
            if webhook is None:
                continue
            if webhook.url is not None:
                try:
                    await self._outbox.table.require_jobs(one.tenant)
                except Reject as error:
                    log.error("a job's webhook cannot be signed", tenant=one.tenant, job=one.job_id, why=str(error))
                    continue
            found[one.job] = webhook
        return found

    async def _events(self, one: Noted) -> list[Event]:
        async with self._reading:
            submitted = await self._submitted(one)
            if submitted is None:
                return []
            records = await JobLog(self._bus, *one.job).records(one.sequence, after=one.sequence - 1)
        return events_of(one.tenant, submitted, records[0]) if records else []

    async def _submitted(self, one: Noted) -> JobSubmitted | None:
        """Return what a job was asked for; None: its log is gone, because it was forgotten."""
        try:
            first = await JobLog(self._bus, *one.job).first()
        except Unavailable:
            if await JobLog(self._bus, *one.job).last() is None:
                return None
            raise
        return first[0] if isinstance(first[0], JobSubmitted) else None
