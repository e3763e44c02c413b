"""Wiring: the bus, the ledger, the MCP servers, and the handlers bound to what is heard."""

from __future__ import annotations

from pathlib import Path

from wayline.chassis import Bus, BusSettings, Service, asks, hears
from wayline.contracts.knowledge import SearchKnowledge, SearchResult
from wayline.contracts.tools import CallTool, CancelTool, ListTools, ResolveTool
from wayline.store import Store
from wayline.telemetry import BusExporter, Telemetry
from wayline.tool_registry.adapters.builtin import builtin_server
from wayline.tool_registry.adapters.inside import Inside
from wayline.tool_registry.adapters.ledger import Ledger
from wayline.tool_registry.adapters.upstream import Upstream
from wayline.tool_registry.adapters.upstreams import Upstreams
from wayline.tool_registry.arguments import Arguments
from wayline.tool_registry.calls import Calls
from wayline.tool_registry.forgetting import Forgetting
from wayline.tool_registry.handlers import Handlers
from wayline.tool_registry.settings import Settings

NAME = "tool_registry"
SPANS_NAME = "tool-registry"
SCHEMA = "tools"
HERE = Path(__file__).parent


def migrations() -> Path:
    """Where the registry's tables are declared."""
    return HERE / "migrations"


async def build(settings: Settings | None = None, *, bus_settings: BusSettings | None = None) -> Service:
    """The registry, connected and not yet listening."""
    settings, bus_settings = settings or Settings(), bus_settings or BusSettings()
    bus = await Bus.connect(bus_settings, service=NAME)
    store = await Store.connect(
        bus_settings.postgres_dsn or "",
        schema=SCHEMA,
        queries=HERE / "queries.sql",
        wait_s=bus_settings.connect_wait_s,
    )
    exporter = BusExporter(SPANS_NAME)
    telemetry = Telemetry(SPANS_NAME, exporter)

    async def search(ask: SearchKnowledge) -> SearchResult:
        return await bus.ask(ask, SearchResult, timeout_s=settings.knowledge_timeout_s)

    async def reach_postgres() -> None:
        await store.fetchval("default", "SELECT 1")

    arguments = Arguments()
    upstreams = Upstreams(
        Inside(lambda: builtin_server(search), settings, arguments),
        [Upstream(server, settings, arguments) for server in settings.servers],
        list_within_s=settings.list_within_s,
    )
    ledger = Ledger(store, lease_s=settings.lease_s)
    calls = Calls(upstreams=upstreams, ledger=ledger, arguments=arguments, telemetry=telemetry, settings=settings)
    handlers = Handlers(upstreams, calls, ledger)
    return Service(
        NAME,
        bus_settings,
        bus,
        telemetry,
        exporter,
        asks=[
            asks(ListTools, handlers.list_tools),
            asks(CallTool, handlers.call_tool, slots=settings.calls_max),
            asks(ResolveTool, handlers.resolve_tool),
            hears(CancelTool, handlers.cancel_tool),
        ],
        parts=[calls, Forgetting(ledger, after_days=settings.keep_days)],
        needs={"postgres": reach_postgres},
        close=store.close,
    )
