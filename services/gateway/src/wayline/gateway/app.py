"""Wiring of the gateway."""

from __future__ import annotations

from pathlib import Path

from wayline.chassis import Bus, BusSettings, Service
from wayline.contracts.errors import Unavailable
from wayline.gateway.settings import Settings
from wayline.store import Store
from wayline.telemetry import BusExporter, Telemetry

SCHEMA = "gateway"


def migrations() -> Path:
    """Where the files are that make this service's tables."""
    return Path(__file__).parent / "migrations"


async def open_store(settings: Settings, shared: BusSettings) -> Store:
    """The gateway's tables. Raises what the store says when they cannot be reached."""
    if shared.postgres_dsn is None:
        raise Unavailable("Postgres", detail="no address: set WAYLINE_POSTGRES_DSN")
    return await Store.connect(
        shared.postgres_dsn,
        schema=SCHEMA,
        queries=Path(__file__).parent / "queries.sql",
        wait_s=settings.postgres_wait_s,
    )


async def build(settings: Settings | None = None, *, bus_settings: BusSettings | None = None) -> Service:
    """Connect to the bus and to Postgres, and put the service together; nothing listens yet."""
    # Imported here: whoever only wants to know the migrations need not wait for FastAPI.
    from wayline.gateway.adapters.keys import Keys
    from wayline.gateway.adapters.submissions import Submissions
    from wayline.gateway.doors import Gateway
    from wayline.gateway.http import application
    from wayline.gateway.server import HttpServer
    from wayline.gateway.streams import Streams

    settings, shared = settings or Settings(), bus_settings or BusSettings()
    bus = await Bus.connect(shared, service="gateway")
    try:
        store = await open_store(settings, shared)
    except BaseException:
        await bus.close()
        raise
    exporter = BusExporter("gateway")
    telemetry = Telemetry("gateway", exporter)
    keys, streams = Keys(store), Streams(settings.streams_max)

    async def postgres() -> None:
        async with store.system() as conn:
            await conn.fetchval("SELECT 1")

    async def ready() -> dict[str, str]:
        return await service.ready()

    door = Gateway(
        settings=settings,
        bus=bus,
        telemetry=telemetry,
        submissions=Submissions(store),
        keys=keys,
        streams=streams,
        ready=ready,
    )
    service = Service(
        name="gateway",
        settings=shared,
        bus=bus,
        telemetry=telemetry,
        exporter=exporter,
        parts=[HttpServer(application(door), settings, streams, any_key=keys.any)],
        needs={"postgres": postgres},
        close=store.close,
    )
    return service
