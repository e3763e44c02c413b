"""Wiring of the gateway."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from wayline.chassis import BusSettings, Part, Periodic, Service, asks, connected
from wayline.chassis.upload_quota import UploadQuota
from wayline.contracts.forgetting import EraseFromGateway
from wayline.contracts.mcp_clients import WatchResource
from wayline.gateway.adapters.audit_log import AuditLog
from wayline.gateway.adapters.change_locks import ChangeLocks
from wayline.gateway.adapters.erased_rows import ErasedRows
from wayline.gateway.adapters.http_server import HttpServer
from wayline.gateway.adapters.job_actions import JobActions
from wayline.gateway.adapters.keys import Keys
from wayline.gateway.adapters.prompts import Prompts
from wayline.gateway.adapters.queue_places import QueueWatch
from wayline.gateway.adapters.rate_limits import RateLimits
from wayline.gateway.adapters.resent_requests import ResentRequests
from wayline.gateway.adapters.router import RouterAnswers
from wayline.gateway.adapters.signals import Signals
from wayline.gateway.adapters.submissions import Submissions
from wayline.gateway.adapters.tenant_feeds import TenantFeeds
from wayline.gateway.adapters.token_buckets import TokenBuckets
from wayline.gateway.application import application
from wayline.gateway.event_streams import EventStreams
from wayline.gateway.handlers.recovery.perform_actions import go_on
from wayline.gateway.handlers.shared.change_streams import ChangeStreams
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.settings import Settings
from wayline.gateway.shapes.limits import default_limits
from wayline.gateway.shown_queries import ShownQueries
from wayline.gateway.token_leases import TokenLeases
from wayline.store import Store
from wayline.telemetry import BusExporter, Telemetry

NAME = "gateway"
SCHEMA = "gateway"
POOL_SIZE = 10
FORGET_BUCKETS_EVERY_S = 300.0
GIVE_BACK_EVERY_S = 2.0
HERE = Path(__file__).parent
ACTIONS_EVERY_S = 5.0
"""How soon an action goes on that another gateway was killed with, or that waits."""


def migrations() -> Path:
    """Return where the files are that make this service's tables."""
    return HERE / "migrations"


async def build(settings: Settings | None = None, *, bus_settings: BusSettings | None = None) -> Service:
    """Connect to the bus and to Postgres, and put the service together; nothing listens yet."""
    settings, shared = settings or Settings(), bus_settings or BusSettings()
    opening = partial(open_store, shared.dsn_of(NAME), pool_size=settings.pool_size, wait_s=settings.postgres_wait_s)
    bus, store = await connected(shared, NAME, opening)
    exporter = BusExporter(NAME)
    service = Service(
        name=NAME,
        settings=shared,
        bus=bus,
        telemetry=Telemetry(NAME, exporter),
        exporter=exporter,
        needs={"postgres": store.check},
    )
    service.telemetry.add_processor(ShownQueries())
    bus.uploads.require_room = UploadQuota(bus).require
    change_streams = ChangeStreams()
    service.asks = [
        asks(WatchResource, change_streams.on_watch, everyone=True),
        asks(EraseFromGateway, ErasedRows(store).erase),
    ]
    buckets = TokenBuckets(store)
    rates = TokenLeases(buckets)
    service.close = partial(_close, rates, store)
    service.parts = [
        Periodic("full buckets", buckets.forget_full, every_s=FORGET_BUCKETS_EVERY_S),
        Periodic("unused tokens", rates.give_back_idle, every_s=GIVE_BACK_EVERY_S),
        *_parts(settings, service, store, change_streams=change_streams, rates=rates),
    ]
    return service


async def open_store(dsn: str, *, pool_size: int = POOL_SIZE, wait_s: float = 0.0) -> Store:
    """Open the gateway's tables; wait `wait_s` for a Postgres that is away."""
    return await Store.connect(dsn, schema=SCHEMA, queries=HERE / "queries.sql", max_size=pool_size, wait_s=wait_s)


async def _close(rates: TokenLeases, store: Store) -> None:
    """Give the tokens back that this process has not used, and leave Postgres."""
    await rates.give_back_all()
    await store.close()


def _parts(
    settings: Settings, service: Service, store: Store, *, change_streams: ChangeStreams, rates: TokenLeases
) -> list[Part]:
    """Return the front door of a service, which tells over HTTP how that service is, and what goes on behind it."""

    async def act() -> None:
        if await go_on(gateway):
            acting.now()

    acting = Periodic("actions on many jobs", act, every_s=ACTIONS_EVERY_S)
    keys = Keys(store, defaults=default_limits(settings))
    streams = EventStreams(
        settings.streams_max, per_tenant=settings.streams_per_tenant_max, per_key=settings.streams_per_key_max
    )
    gateway = Gateway(
        settings=settings,
        bus=service.bus,
        store=store,
        telemetry=service.telemetry,
        submissions=Submissions(store),
        signals=Signals(service.bus, per_tenant_max=service.settings.signals_per_tenant_max),
        keys=keys,
        limits=RateLimits(store),
        rates=rates,
        prompts=Prompts(store),
        resent_requests=ResentRequests(store),
        change_locks=ChangeLocks(store),
        router=RouterAnswers(service.bus),
        streams=streams,
        change_streams=change_streams,
        queues=QueueWatch(service.bus),
        audit=AuditLog(store),
        job_actions=JobActions(store),
        acting=acting,
        feeds=TenantFeeds(service.bus, per_tenant_max=settings.event_streams_per_tenant_max),
        ready=service.ready,
    )
    return [HttpServer(application(gateway), settings, streams, any_key=keys.any), acting]
