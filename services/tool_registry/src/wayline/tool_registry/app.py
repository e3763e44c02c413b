"""Wiring: the bus, the ledger, the MCP servers, and the handlers bound to their messages."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from wayline.chassis import Ask, Bus, BusSettings, Periodic, Service, asks, connected, hears
from wayline.chassis.handling.responder import Responder
from wayline.chassis.upload_quota import UploadQuota
from wayline.contracts.bus_tools import AnnounceTools
from wayline.contracts.knowledge import EmbeddedTexts, EmbedTexts, SearchKnowledge, SearchResult
from wayline.contracts.mcp_servers import (
    ApproveDefinitions,
    AuthorizeServer,
    DeleteServer,
    EnableServer,
    FinishAuthorization,
    ForgetAuthorization,
    ForgetUser,
    GetImpact,
    GetServer,
    ListLogins,
    ListServers,
    PutServer,
    ServersChanged,
    ServerSettings,
    TrySavedServer,
    TryServer,
)
from wayline.contracts.tools import BUILTIN, CallTool, CancelTool, ListTools, ResolveTool, SearchTools, VoidTool
from wayline.store import Store
from wayline.telemetry import BusExporter, Telemetry
from wayline.tool_registry.adapters.builtin_tools import builtin_server, builtin_settings
from wayline.tool_registry.adapters.bus_tools import BusServices, ServicePins
from wayline.tool_registry.adapters.connection.transport import Confinement
from wayline.tool_registry.adapters.images.image_tools import ImageTools, image_tools
from wayline.tool_registry.adapters.servers.builtin_server import BuiltinServer
from wayline.tool_registry.adapters.servers.mcp_server import McpServer
from wayline.tool_registry.adapters.servers.mcp_servers import McpServers
from wayline.tool_registry.adapters.servers.server_auth_factory import ServerAuthFactory
from wayline.tool_registry.adapters.servers.tenant_servers import TenantServers
from wayline.tool_registry.adapters.servers.user_connections import UserConnections
from wayline.tool_registry.adapters.servers.user_server import UserServer
from wayline.tool_registry.adapters.tables.authorization_table import AuthorizationTable
from wayline.tool_registry.adapters.tables.definition_table import DefinitionTable, ServerPins
from wayline.tool_registry.adapters.tables.ledger import PostgresLedger
from wayline.tool_registry.adapters.tables.server_table import ServerTable
from wayline.tool_registry.adapters.tool_embeddings import ToolEmbeddings
from wayline.tool_registry.adapters.web.web_tools import WebTools, web_tools
from wayline.tool_registry.calls.running_calls import RunningCalls
from wayline.tool_registry.handlers.announcements import AnnouncementHandlers
from wayline.tool_registry.handlers.authorizations import AuthorizationHandlers
from wayline.tool_registry.handlers.calls import CallHandlers
from wayline.tool_registry.handlers.impact import ImpactHandlers
from wayline.tool_registry.handlers.search import SearchHandlers
from wayline.tool_registry.handlers.servers import ServerHandlers
from wayline.tool_registry.saved_servers import require_allowed
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.token_owner import TokenOwner
from wayline.tool_registry.tools.arguments import Arguments

NAME = "tool_registry"
SPANS_NAME = "tool-registry"
SCHEMA = "tools"
HERE = Path(__file__).parent
FORGET_EVERY_S = 3_600.0
"""How often calls that no job can ask for any more are deleted."""

TRIES_MAX = 4
"""Servers of each kind, saved and not, that are tried at once: each may be a program that is downloaded first."""


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
    web, images = web_tools(settings), image_tools(settings, bus)
    bus.uploads.require_room = UploadQuota(bus).require
    table = ServerTable(store, settings.secret_keys(), per_tenant_max=settings.servers_per_tenant_max)
    definitions = DefinitionTable(store)
    authorizations = AuthorizationTable(store, settings.secret_keys())
    authorizing = ServerAuthFactory(authorizations, settings)
    of_tenants = _of_tenants(settings, table, definitions, arguments, authorizing)
    on_bus = BusServices(bus, settings, arguments)
    service_pins = ServicePins(definitions, table, trusted=settings.trusted_services)
    builtin = _builtin(settings, bus, arguments, web, images)
    servers = _servers(settings, builtin, arguments, of_tenants=of_tenants, on_bus=on_bus)
    services = AnnouncementHandlers(servers, on_bus, service_pins)

    async def reread() -> None:
        await of_tenants.refresh()
        await services.compare_again()

    rereading = Periodic("reading tenants' servers", reread, every_s=settings.reread_every_s)
    embeddings = _embeddings(settings, bus)
    administration = ServerHandlers(
        *(table, definitions, servers, of_tenants, settings, bus.send),
        *(authorizing.of, rereading.now, services),
    )
    logins = AuthorizationHandlers(table, authorizations, authorizing.client, administration.announce)
    impact = ImpactHandlers(bus, administration, definitions, servers, of_tenants, arguments, settings)
    ledger = PostgresLedger(store, lease_s=settings.lease_s)
    # In every replica: deleting twice does no harm.
    forget = partial(ledger.forget, after_days=settings.keep_days)
    forgetting = Periodic("forgetting old calls", forget, every_s=FORGET_EVERY_S)

    async def seal_again() -> None:
        await table.seal_again()
        await authorizations.seal_again()

    sealing = Periodic("encrypting with the newest key", seal_again, every_s=FORGET_EVERY_S)

    async def close() -> None:
        await embeddings.close()
        await web.close()
        if images is not None:
            await images.close()
        await store.close()

    announcements = asks(AnnounceTools, services.announce, everyone=True)
    running = RunningCalls(servers=servers, ledger=ledger, arguments=arguments, telemetry=telemetry, settings=settings)
    return Service(
        NAME,
        shared,
        bus,
        telemetry,
        exporter,
        asks=[
            *_asks(
                CallHandlers(servers, running, ledger),
                SearchHandlers(servers, embeddings),
                calls_max=settings.calls_max,
            ),
            *_asks_about_servers(administration, impact),
            asks(AuthorizeServer, logins.authorize, slots=TRIES_MAX),
            asks(FinishAuthorization, logins.finish, slots=TRIES_MAX),
            asks(ForgetAuthorization, logins.forget, slots=TRIES_MAX),
            asks(ForgetUser, logins.forget_user, slots=TRIES_MAX),
            asks(ListLogins, logins.list),
        ],
        # First, to hear what `running` asks for at its start.
        parts=[Responder(bus, telemetry, announcements), running, forgetting, rereading, sealing],
        needs={"postgres": store.check},
        close=close,
    )


async def open_store(dsn: str, *, wait_s: float = 0.0) -> Store:
    """Open the ledger's tables; wait `wait_s` for a Postgres that is away."""
    return await Store.connect(dsn, schema=SCHEMA, queries=HERE / "queries.sql", wait_s=wait_s)


def _of_tenants(
    settings: Settings,
    table: ServerTable,
    definitions: DefinitionTable,
    arguments: Arguments,
    authorizing: ServerAuthFactory,
) -> TenantServers:
    confined = Confinement.by(settings)

    def connect(tenant: str, server: ServerSettings) -> McpServer:
        pins = ServerPins(definitions, tenant, server.name)
        more = {"confined": confined, "pins": pins, "authorize": authorizing.of(tenant, server, server.name)}
        if server.oauth is None or server.oauth.credentials == "tenant":
            return McpServer(server, settings, arguments, **more)
        return UserServer(server, settings, arguments, users=users(tenant, server), **more)

    def users(tenant: str, server: ServerSettings) -> UserConnections:
        def connect_user(user_id: str) -> McpServer:
            # Without pins: what is called is what the tenant's own connection offers.
            authorize = authorizing.of(tenant, server, server.name, user_id)
            return McpServer(server, settings, arguments, confined=confined, authorize=authorize)

        async def logged_in_at(user_id: str) -> datetime | None:
            return await authorizing.table.logged_in_at(TokenOwner(tenant, server.name, user_id))

        return UserConnections(server.name, settings, logged_in_at=logged_in_at, connect=connect_user)

    return TenantServers(
        table,
        connect,
        require_allowed=partial(require_allowed, settings=settings),
        taken=frozenset({BUILTIN, *(server.name for server in settings.servers)}),
        read_within_s=settings.list_within_s,
    )


def _builtin(
    settings: Settings, bus: Bus, arguments: Arguments, web: WebTools, images: ImageTools | None
) -> BuiltinServer:
    async def search(ask: SearchKnowledge) -> SearchResult:
        return await bus.ask(ask, SearchResult, timeout_s=settings.knowledge_timeout_s)

    listed = builtin_settings(web, images)
    return BuiltinServer(lambda: builtin_server(search, web, images), listed, settings, arguments)


def _embeddings(settings: Settings, bus: Bus) -> ToolEmbeddings:
    async def embed(ask: EmbedTexts) -> EmbeddedTexts:
        return await bus.ask(ask, EmbeddedTexts, timeout_s=settings.knowledge_timeout_s)

    return ToolEmbeddings(embed, wait_s=settings.search_embedding_wait_s)


def _servers(
    settings: Settings,
    builtin: BuiltinServer,
    arguments: Arguments,
    *,
    of_tenants: TenantServers,
    on_bus: BusServices,
) -> McpServers:
    """Return every server: our own inside this process, those that the settings name, those of tenants, the bus's."""
    return McpServers(
        builtin,
        [McpServer(server, settings, arguments) for server in settings.servers],
        of_tenants=of_tenants,
        on_bus=on_bus,
        list_within_s=settings.list_within_s,
        missing=settings.missing_tools(),
    )


def _asks(handlers: CallHandlers, search: SearchHandlers, *, calls_max: int) -> list[Ask[Any]]:
    return [
        asks(ListTools, handlers.list_tools),
        asks(SearchTools, search.search_tools),
        asks(CallTool, handlers.call_tool, slots=calls_max),
        asks(ResolveTool, handlers.resolve_tool),
        asks(VoidTool, handlers.void_tool, slots=calls_max),
        hears(CancelTool, handlers.cancel_tool),
    ]


def _asks_about_servers(administration: ServerHandlers, impact: ImpactHandlers) -> list[Ask[Any]]:
    return [
        asks(GetImpact, impact.impact, slots=TRIES_MAX),
        asks(PutServer, administration.put),
        asks(TryServer, administration.try_server, slots=TRIES_MAX),
        asks(TrySavedServer, administration.try_saved, slots=TRIES_MAX),
        asks(ListServers, administration.list),
        asks(GetServer, administration.get),
        asks(DeleteServer, administration.delete),
        asks(EnableServer, administration.enable),
        asks(ApproveDefinitions, administration.approve),
        hears(ServersChanged, administration.changed),
    ]
