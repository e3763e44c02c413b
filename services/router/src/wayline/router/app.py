"""The router put together."""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from pathlib import Path

from wayline.chassis import BusSettings, Service, connected
from wayline.router.agents.bundled import bundled
from wayline.router.bindings import asks_of, work_of
from wayline.router.sessions.turn_upkeep import TurnUpkeep
from wayline.router.settings import Settings
from wayline.router.wiring import Handlers, Rooms, work_watch
from wayline.store import Store
from wayline.telemetry import BusExporter, Telemetry

NAME = "router"
SCHEMA = "router"
POOL_SIZE = 10
SESSION = {"enable_seqscan": "off"}
"""A session keeps the plans that it made for empty tables until `ANALYZE` runs, and an empty table is read whole: jobs
that wait for a budget would be looked for among all that there have been. `force_custom_plan` is no help: without
statistics the index of those that wait is not trusted, and planning each statement of the money functions takes longer
than running it."""


def migrations() -> Path:
    """Return where the files are that make the router's tables."""
    return Path(str(files("wayline.router") / "migrations"))


async def build(settings: Settings | None = None, *, bus_settings: BusSettings | None = None) -> Service:
    """Connect, and bind every handler to what it hears."""
    settings, shared = settings or Settings(), bus_settings or BusSettings()
    opening = partial(open_store, shared.dsn_of(NAME), pool_size=settings.pool_size, wait_s=shared.connect_wait_s)
    bus, store = await connected(shared, NAME, opening)
    exporter = BusExporter(NAME)
    rooms = Rooms.of(bus, store, settings, signals_per_tenant_max=shared.signals_per_tenant_max)
    await rooms.agents.seed(bundled())
    handlers = Handlers.of(bus, rooms, settings)
    return Service(
        name=NAME,
        settings=shared,
        bus=bus,
        telemetry=Telemetry(NAME, exporter),
        exporter=exporter,
        work=work_of(bus, rooms, handlers, slots=settings.slots),
        asks=asks_of(handlers),
        parts=[
            *(*rooms.parts(), work_watch(store, rooms, settings)),
            TurnUpkeep(bus, rooms.turn_table, handlers.records.conclude),
        ],
        reports_stored=False,
        needs={"postgres": store.check},
        close=store.close,
    )


async def open_store(dsn: str, *, pool_size: int = POOL_SIZE, wait_s: float = 0.0) -> Store:
    """Open the router's tables; wait `wait_s` for a Postgres that is away."""
    queries = files("wayline.router") / "queries.sql"
    return await Store.connect(dsn, schema=SCHEMA, queries=queries, max_size=pool_size, wait_s=wait_s, session=SESSION)
