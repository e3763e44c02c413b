"""Puts the notifier together."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg

from wayline.chassis import Ask, Bus, BusSettings, Failpoint, Part, Periodic, Service, asks, connected
from wayline.chassis.concurrency.work_watch import Look, WorkWatch
from wayline.chassis.handling.batches import Batches, BatchFailpoints, Linger, StoreErrors
from wayline.chassis.topology import DEAD_NOTIFIER, EVENTS_NOTIFIER, NOTICES_NOTIFIER
from wayline.contracts.forgetting import EraseFromNotifier
from wayline.contracts.webhooks import (
    DeleteWebhook,
    GetWebhook,
    GetWebhookDelivery,
    ListWebhookDeliveries,
    ListWebhooks,
    PutWebhook,
    Redeliver,
    RotateWebhook,
    TestWebhook,
)
from wayline.guarded_http import AddressPolicy, GuardedClient
from wayline.notifier.deliveries.delivery_table import DeliveryTable, Shares
from wayline.notifier.deliveries.failing_webhooks import FailingWebhooks
from wayline.notifier.deliveries.handlers import DeliveryHandlers, Eraser
from wayline.notifier.deliveries.send_request import RequestSender
from wayline.notifier.deliveries.sender import Sender
from wayline.notifier.events.job_records import JobRecords
from wayline.notifier.events.notices import Notices
from wayline.notifier.events.outbox import Outbox
from wayline.notifier.events.record_reader import RecordReader
from wayline.notifier.settings import Settings
from wayline.notifier.upkeep import Upkeep
from wayline.notifier.webhooks.handlers import WebhookHandlers
from wayline.notifier.webhooks.webhook_table import WebhookTable
from wayline.store import PostgresUnavailable, Store
from wayline.telemetry import BusExporter, Telemetry

NAME = "notifier"
SCHEMA = "notifier"
HERE = Path(__file__).parent
POOL_SIZE = 8
ERRORS = StoreErrors(
    away=(PostgresUnavailable,), refused=(asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
)
FAILPOINTS = BatchFailpoints(
    Failpoint.NOTIFIER_STORE_BEFORE, Failpoint.NOTIFIER_STORE_AFTER, Failpoint.NOTIFIER_ACK_AFTER
)


def migrations() -> Path:
    """Return the folder of the migrations of the notifier's schema."""
    return HERE / "migrations"


async def open_store(dsn: str, *, pool_size: int = POOL_SIZE, wait_s: float = 0.0) -> Store:
    """Open the notifier's tables; wait `wait_s` for a Postgres that is away."""
    queries = HERE / "queries.sql"
    return await Store.connect(dsn, schema=SCHEMA, queries=queries, max_size=pool_size, wait_s=wait_s)


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


async def build(
    settings: Settings | None = None,
    *,
    bus_settings: BusSettings | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> Service:
    """Connect and wire everything; nothing runs until the service is started."""
    settings, shared = settings or Settings(), bus_settings or BusSettings()
    opening = partial(open_store, shared.dsn_of(NAME), pool_size=settings.pool_size, wait_s=settings.postgres_wait_s)
    bus, store = await connected(shared, NAME, opening, key_ids=settings.webhook_keys().ids)
    telemetry_exporter = BusExporter(NAME)
    telemetry = Telemetry(NAME, telemetry_exporter)
    client = _client(settings)
    webhooks = WebhookTable(store, settings.webhook_keys(), clock, settings.webhooks_per_tenant_max)
    shares = Shares(per_webhook=settings.sending_per_webhook_max, per_tenant=settings.sending_per_tenant_max)
    deliveries = DeliveryTable(store, clock, shares, settings.timeout_s + settings.claim_margin_s)
    failing_max = timedelta(days=settings.failing_days_max)
    failing = FailingWebhooks(bus, store, clock, failing_max, settings.pending_per_webhook_max)
    sender = Sender(
        deliveries,
        RequestSender(webhooks, client, clock, settings.timeout_s),
        failing,
        sending_max=settings.sending_max,
        poll_every_s=settings.poll_every_s,
        noted_within_s=settings.claim_margin_s / 2,
    )
    public_url = None if settings.public_url is None else str(settings.public_url)
    records, notices = _readers(settings, bus, Outbox(webhooks, public_url, sender.wake))
    readers: dict[str, RecordReader | Batches[Any]] = {"records": records, **notices}
    upkeep = Upkeep(store, webhooks, failing, clock, keep=timedelta(days=settings.keep_days))
    parts: list[Part] = [
        *(sender, *readers.values()),
        _work_watch(settings, store, clock, sender, records),
        Periodic("upkeep", upkeep.run, every_s=settings.upkeep_every_s),
    ]

    async def close() -> None:
        await client.close()
        await store.close()

    return Service(
        NAME,
        shared,
        bus,
        telemetry,
        telemetry_exporter,
        asks=[
            *_asks(WebhookHandlers(webhooks), DeliveryHandlers(webhooks, deliveries, sender)),
            asks(EraseFromNotifier, Eraser(store).on_erase),
        ],
        parts=parts,
        needs={"postgres": store.check, **{name: reader.check for name, reader in readers.items()}},
        close=close,
    )


def _client(settings: Settings) -> GuardedClient:
    return GuardedClient(
        AddressPolicy.of(settings.allowed_hosts),
        connections_max=settings.sending_max,
        proxy=None if settings.http_proxy is None else settings.http_proxy.get_secret_value(),
        ca_file=None if settings.ca_file is None else str(settings.ca_file),
    )


def _work_watch(
    settings: Settings, store: Store, clock: Callable[[], datetime], sender: Sender, records: RecordReader
) -> WorkWatch:
    """Return what asks the tables for deliveries of other processes, and whether records are to be read."""
    looks = {
        "deliveries": Look(sender.wake, settings.poll_every_s),
        "webhooks": Look(records.look_now, settings.poll_every_s),
    }

    async def due() -> set[str]:
        found = set(await store.true_columns(store.sql.work_due, clock() + timedelta(seconds=settings.poll_every_s)))
        # Records are read as long as there is a webhook: what is told is that this has changed.
        return found ^ {"webhooks"} if records.is_reading else found

    return WorkWatch(due, looks)


def _readers(settings: Settings, bus: Bus, outbox: Outbox) -> tuple[RecordReader, dict[str, Batches[Any]]]:
    batches = partial(
        Batches,
        bus,
        errors=ERRORS,
        failpoints=FAILPOINTS,
        size=settings.batch_max,
        linger=Linger(settings.linger_ms / 1_000),
    )
    records, notices = JobRecords(bus, outbox), Notices(bus, outbox)
    reader = RecordReader(
        bus,
        outbox.table,
        partial(batches, EVENTS_NOTIFIER, read=records.read, store=records.store),
        pass_over_every_s=settings.upkeep_every_s,
    )
    return reader, {
        "notices": batches(NOTICES_NOTIFIER, read=notices.read, store=notices.store),
        "dead letters": batches(DEAD_NOTIFIER, read=notices.read_letter, store=notices.store),
    }


def _asks(webhooks: WebhookHandlers, deliveries: DeliveryHandlers) -> list[Ask[Any]]:
    return [
        asks(PutWebhook, webhooks.on_put),
        asks(GetWebhook, webhooks.on_get),
        asks(ListWebhooks, webhooks.on_list),
        asks(DeleteWebhook, webhooks.on_delete),
        asks(RotateWebhook, webhooks.on_rotate),
        asks(TestWebhook, deliveries.on_test),
        asks(ListWebhookDeliveries, deliveries.on_list),
        asks(GetWebhookDelivery, deliveries.on_get),
        asks(Redeliver, deliveries.on_redeliver),
    ]
