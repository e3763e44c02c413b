"""The registry put together."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import structlog

from wayline.chassis import BusSettings, Service, connected
from wayline.chassis.handling.responder import Responder
from wayline.chassis.upload_quota import UploadQuota
from wayline.store import Store
from wayline.telemetry import BusExporter, Telemetry
from wayline.tool_registry.bindings import announcements_of, asks_of
from wayline.tool_registry.calls.running_calls import RunningCalls
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.programs.jails import Jails
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.wiring import Adapters, Handlers

log = structlog.get_logger()

NAME = "tool_registry"
SPANS_NAME = "tool-registry"
SCHEMA = "tools"
POOL_SIZE = 10
HERE = Path(__file__).parent


def migrations() -> Path:
    """Return where the registry's tables are declared."""
    return HERE / "migrations"


async def build(settings: Settings | None = None, *, bus_settings: BusSettings | None = None) -> Service:
    """Build the registry, connected and not yet listening."""
    settings, shared = settings or Settings(), bus_settings or BusSettings()
    opening = partial(open_store, shared.dsn_of(NAME), pool_size=settings.pool_size, wait_s=shared.connect_wait_s)
    bus, store = await connected(shared, NAME, opening, key_ids=settings.secret_keys().ids)
    exporter = BusExporter(SPANS_NAME)
    telemetry = Telemetry(SPANS_NAME, exporter)
    bus.uploads.require_room = UploadQuota(bus).require
    arguments = Arguments()
    adapters = Adapters.of(bus, store, settings, arguments)
    running = RunningCalls(
        servers=adapters.servers,
        ledger=adapters.tables.ledger,
        arguments=arguments,
        telemetry=telemetry,
        settings=settings,
    )
    await _report_programs(settings, adapters.jails)
    handlers = Handlers.of(bus, adapters, running, settings=settings, arguments=arguments)
    # First, to hear what `running` asks for at its start.
    announcements = Responder(bus, telemetry, announcements_of(handlers))

    async def close() -> None:
        await adapters.close()
        await store.close()

    return Service(
        name=NAME,
        settings=shared,
        bus=bus,
        telemetry=telemetry,
        exporter=exporter,
        asks=asks_of(handlers, calls_max=settings.calls_max),
        parts=[announcements, running, handlers.rereading, *adapters.tables.upkeep(bus, keep_days=settings.keep_days)],
        needs={"postgres": store.check, "mcp servers": adapters.servers.check_tried},
        close=close,
    )


async def _report_programs(settings: Settings, jails: Jails) -> None:
    """Log where tenants may have programs, and these cannot run or are not isolated."""
    if not settings.commands or settings.programs == "off":
        return
    if settings.programs == "unconfined":
        log.warning("programs of tenants run unconfined, with the rights of this process")
    elif (why := await jails.why_not()) is not None:
        log.error(
            "programs of tenants do not run: they cannot be isolated here",
            why=why,
            todo="WAYLINE_TOOL_REGISTRY_PROGRAMS=unconfined lets them run with the rights of this process",
        )


async def open_store(dsn: str, *, pool_size: int = POOL_SIZE, wait_s: float = 0.0) -> Store:
    """Open the ledger's tables; wait `wait_s` for a Postgres that is away."""
    return await Store.connect(dsn, schema=SCHEMA, queries=HERE / "queries.sql", max_size=pool_size, wait_s=wait_s)
