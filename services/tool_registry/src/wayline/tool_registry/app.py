"""Wiring: the bus, the ledger, the MCP servers, and the handlers bound to their messages."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from wayline.chassis import Ask, Bus, BusSettings, Periodic, Service, asks, connected, hears
from wayline.contracts.knowledge import SearchKnowledge, SearchResult
from wayline.contracts.mcp_servers import (
    DeleteServer,
    EnableServer,
    GetServer,
    ListServers,
    PutServer,
    ServersChanged,
    ServerSettings,
)
from wayline.contracts.tools import CallTool, CancelTool, ListTools, ResolveTool, VoidTool
from wayline.store import Store
from wayline.telemetry import BusExporter, Telemetry
from wayline.tool_registry.adapters.builtin_server import BuiltinServer
from wayline.tool_registry.adapters.builtin_tools import SERVER, builtin_server
from wayline.tool_registry.adapters.ledger import PostgresLedger
from wayline.tool_registry.adapters.mcp_server import McpServer
from wayline.tool_registry.adapters.mcp_servers import McpServers
from wayline.tool_registry.adapters.server_table import ServerTable
from wayline.tool_registry.adapters.tenant_servers import TenantServers
from wayline.tool_registry.adapters.transport import Confinement
from wayline.tool_registry.arguments import Arguments
from wayline.tool_registry.handlers.calls import Handlers
from wayline.tool_registry.handlers.servers import ServerHandlers
from wayline.tool_registry.running_calls import RunningCalls
from wayline.tool_registry.settings import Settings

NAME = "tool_registry"
SPANS_NAME = "tool-registry"
SCHEMA = "tools"
HERE = Path(__file__).parent
FORGET_EVERY_S = 3_600.0
"""How often calls that no job can ask for any more are deleted."""


def migrations() -> Path:
    """Return where the registry's tables are declared."""
    return HERE / "migrations"


async def build(settings: Settings | None = None, *, bus_settings: BusSettings | None = None) -> Service:
    """Build the registry, connected and not yet listening."""
    settings, shared = settings or Settings(), bus_settings or BusSettings()
    opening = partial(open_store, shared.dsn_of(NAME), wait_s=shared.connect_wait_s)
    bus, store = await connected(shared, NAME, opening)
    exporter = BusExporter(SPANS_NAME)
    telemetry = Telemetry(SPANS_NAME, exporter)
    arguments = Arguments()
    table = ServerTable(store, settings.secret_keys(), per_tenant_max=settings.servers_per_tenant_max)
    of_tenants = _of_tenants(settings, table, arguments)
    servers = _servers(settings, bus, arguments, of_tenants)
    rereading = Periodic("reading tenants' servers", of_tenants.refresh, every_s=settings.reread_every_s)
    sealing = Periodic("encrypting with the newest key", table.seal_again, every_s=FORGET_EVERY_S)
    administration = ServerHandlers(table, servers, of_tenants, settings, bus.send, rereading.now)
    ledger = PostgresLedger(store, lease_s=settings.lease_s)
    # In every replica: deleting twice does no harm.
    forget = partial(ledger.forget, after_days=settings.keep_days)
    forgetting = Periodic("forgetting old calls", forget, every_s=FORGET_EVERY_S)
    running = RunningCalls(servers=servers, ledger=ledger, arguments=arguments, telemetry=telemetry, settings=settings)
    return Service(
        NAME,
        shared,
        bus,
        telemetry,
        exporter,
        asks=_asks(Handlers(servers, running, ledger), administration, calls_max=settings.calls_max),
        parts=[running, forgetting, rereading, sealing],
        needs={"postgres": store.check},
        close=store.close,
    )


async def open_store(dsn: str, *, wait_s: float = 0.0) -> Store:
    """Open the ledger's tables; wait `wait_s` for a Postgres that is away."""
    return await Store.connect(dsn, schema=SCHEMA, queries=HERE / "queries.sql", wait_s=wait_s)


def _of_tenants(settings: Settings, table: ServerTable, arguments: Arguments) -> TenantServers:
    def connect(tenant: str, server: ServerSettings) -> McpServer:
        return McpServer(server, settings, arguments, confined=Confinement.by(settings))

    return TenantServers(
        table,
        connect,
        taken=frozenset({SERVER.name, *(server.name for server in settings.servers)}),
        read_within_s=settings.list_within_s,
    )


def _servers(settings: Settings, bus: Bus, arguments: Arguments, of_tenants: TenantServers) -> McpServers:
    """Return every MCP server: our own inside this process, those that the settings name, and those of tenants."""

    async def search(ask: SearchKnowledge) -> SearchResult:
        return await bus.ask(ask, SearchResult, timeout_s=settings.knowledge_timeout_s)

    return McpServers(
        BuiltinServer(lambda: builtin_server(search), settings, arguments),
        [McpServer(server, settings, arguments) for server in settings.servers],
        of_tenants=of_tenants,
        list_within_s=settings.list_within_s,
    )


def _asks(handlers: Handlers, administration: ServerHandlers, *, calls_max: int) -> list[Ask[Any]]:
    return [
        asks(ListTools, handlers.list_tools),
        asks(CallTool, handlers.call_tool, slots=calls_max),
        asks(ResolveTool, handlers.resolve_tool),
        asks(VoidTool, handlers.void_tool, slots=calls_max),
        hears(CancelTool, handlers.cancel_tool),
        asks(PutServer, administration.put),
        asks(ListServers, administration.list),
        asks(GetServer, administration.get),
        asks(DeleteServer, administration.delete),
        asks(EnableServer, administration.enable),
        hears(ServersChanged, administration.changed),
    ]
