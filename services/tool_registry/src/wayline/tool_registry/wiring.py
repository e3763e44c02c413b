"""The registry's adapters and handlers, each made from those that it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Self, TypeVar

from wayline.chassis import Bus, Periodic
from wayline.contracts.base import Frozen, Request
from wayline.contracts.knowledge import EmbeddedTexts, EmbedTexts, SearchResult
from wayline.contracts.memory import FactsRecalled, FactsSaved
from wayline.contracts.server_config import ProgramLimits, ServerSettings
from wayline.contracts.task_graphs import DocumentContext, TaskGraph
from wayline.contracts.tools import BUILTIN
from wayline.store import Store
from wayline.tool_registry.builtin_tools import MemoryRequests, PlanningTools, builtin_settings, make_builtin_server
from wayline.tool_registry.builtin_tools.builtin_server import BuiltinServer
from wayline.tool_registry.builtin_tools.image_tools import ImageTools, image_tools
from wayline.tool_registry.bus_tools import BusServices
from wayline.tool_registry.calls.erased_calls import ErasedCalls
from wayline.tool_registry.calls.handlers import CallHandlers
from wayline.tool_registry.calls.ledger_table import PostgresLedger
from wayline.tool_registry.calls.running_calls import RunningCalls
from wayline.tool_registry.connection.http.bytes_in_flight import BytesInFlight
from wayline.tool_registry.connection.server_transport import Confinement
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.change_notices import ChangeNotices
from wayline.tool_registry.definitions.definition_table import DefinitionTable, ServerPins, UserPins
from wayline.tool_registry.logins.authorization_table import AuthorizationTable
from wayline.tool_registry.logins.handlers import AuthorizationHandlers
from wayline.tool_registry.logins.server_auth_factory import ServerAuthFactory
from wayline.tool_registry.logins.token_owner import TokenOwner
from wayline.tool_registry.logins.token_renewals import TokenRenewals
from wayline.tool_registry.programs.jails import Jails
from wayline.tool_registry.programs.program_policy import ProgramPolicy
from wayline.tool_registry.secrets.handlers import SecretHandlers
from wayline.tool_registry.secrets.sealed_rows import SealedRows
from wayline.tool_registry.secrets.secret_table import SecretTable
from wayline.tool_registry.servers.mcp_server import McpServer
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.tenant_servers.handlers.announcements import AnnouncementHandlers
from wayline.tool_registry.tenant_servers.handlers.impact import ImpactHandlers
from wayline.tool_registry.tenant_servers.handlers.resources import ResourceHandlers
from wayline.tool_registry.tenant_servers.handlers.servers import ServerHandlers
from wayline.tool_registry.tenant_servers.mcp_servers import McpServers
from wayline.tool_registry.tenant_servers.running_servers import TenantServers
from wayline.tool_registry.tenant_servers.saved_servers import require_allowed
from wayline.tool_registry.tenant_servers.server_table import ServerTable
from wayline.tool_registry.tenant_servers.server_tries import ServerTries
from wayline.tool_registry.tenant_servers.service_pins import ServicePins
from wayline.tool_registry.tenant_servers.user_connections import UserConnections
from wayline.tool_registry.tenant_servers.user_server import UserServer
from wayline.tool_registry.tool_search.handlers import SearchHandlers
from wayline.tool_registry.tool_search.tool_embeddings import ToolEmbeddings
from wayline.tool_registry.web.web_tools import WebTools, web_tools

T = TypeVar("T", bound=Frozen)

RENEWALS_END_S = 20.0
"""How long renewals of tokens may go on when the service is stopped: an answer that is lost is a lost login."""
NOTICES_EVERY_S = 5.0
UPKEEP_EVERY_S = 3_600.0
"""How often calls that no job can ask for any more are deleted, and secrets are encrypted with the newest key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What the registry keeps in Postgres."""

    authorizations: AuthorizationTable
    definitions: DefinitionTable
    ledger: PostgresLedger
    sealed: SealedRows
    secrets: SecretTable
    servers: ServerTable
    store: Store

    @classmethod
    def of(cls, store: Store, settings: Settings) -> Self:
        """Make each from its settings."""
        keys = settings.secret_keys()
        authorizations, secrets = AuthorizationTable(store, keys), SecretTable(store, keys)
        servers = ServerTable(store, keys, per_tenant_max=settings.servers_per_tenant_max)
        return cls(
            authorizations=authorizations,
            definitions=DefinitionTable(store),
            ledger=PostgresLedger(store, lease_s=settings.lease_s),
            sealed=SealedRows(store, keys, servers=servers, authorizations=authorizations, secrets=secrets),
            secrets=secrets,
            servers=servers,
            store=store,
        )

    def upkeep(self, bus: Bus, *, keep_days: int) -> list[Periodic]:
        """Return what is done with the rows every so often, in every replica: doing it twice does no harm."""
        forget = partial(self.ledger.forget, after_days=keep_days)
        return [
            Periodic("forgetting old calls", forget, every_s=UPKEEP_EVERY_S),
            Periodic("encrypting with the newest key", self.sealed.seal_again, every_s=UPKEEP_EVERY_S),
            Periodic("notices of changed tools", ChangeNotices(bus, self.store).tell, every_s=NOTICES_EVERY_S),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """The tables, the servers that tools are called on, and what the built-in tools work with."""

    tables: Tables
    auth: ServerAuthFactory
    jails: Jails
    confine: Callable[[str], Confinement]
    servers: McpServers
    of_tenants: TenantServers
    on_bus: BusServices
    embeddings: ToolEmbeddings
    web: WebTools
    images: ImageTools | None

    @classmethod
    def of(cls, bus: Bus, store: Store, settings: Settings, arguments: Arguments) -> Self:
        """Make each from its settings; nothing runs yet."""
        tables = Tables.of(store, settings)
        auth = ServerAuthFactory(tables.authorizations, TokenRenewals(tables.authorizations), settings)
        jails = Jails.by(settings.programs_dir, reads=settings.program_reads)

        in_flight: dict[str, BytesInFlight] = {}

        def confine(tenant: str) -> Confinement:
            answers = in_flight.setdefault(tenant, BytesInFlight(settings.answers_per_tenant_max_bytes))
            programs = _programs(settings, tenant, jails)
            secrets = partial(tables.secrets.values, tenant)
            return Confinement(
                settings.addresses_of(tenant),
                proxy=settings.proxy_url,
                programs=programs,
                in_flight=answers,
                secrets=secrets,
                tenant=tenant,
            )

        of_tenants = _of_tenants(settings, tables, arguments, auth, confine)
        on_bus = BusServices(bus, settings, arguments)
        web, images = web_tools(settings, jails), image_tools(settings, bus)
        builtin = _builtin(settings, bus, arguments, web, images)
        return cls(
            tables=tables,
            auth=auth,
            jails=jails,
            confine=confine,
            servers=_servers(settings, builtin, arguments, of_tenants=of_tenants, on_bus=on_bus),
            of_tenants=of_tenants,
            on_bus=on_bus,
            embeddings=_embeddings(settings, bus),
            web=web,
            images=images,
        )

    async def close(self) -> None:
        """Give back what the tools hold open."""
        await self.auth.renewals.close(within_s=RENEWALS_END_S)
        await self.embeddings.close()
        await self.web.close()
        if self.images is not None:
            await self.images.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """What answers each message, by subject."""

    announcements: AnnouncementHandlers
    calls: CallHandlers
    erased_calls: ErasedCalls
    impact: ImpactHandlers
    logins: AuthorizationHandlers
    resources: ResourceHandlers
    search: SearchHandlers
    secrets: SecretHandlers
    servers: ServerHandlers
    rereading: Periodic
    """Reads tenants' servers again, and compares services on the bus."""

    @classmethod
    def of(
        cls, bus: Bus, adapters: Adapters, running: RunningCalls, *, settings: Settings, arguments: Arguments
    ) -> Self:
        """Make each from the adapters that it needs."""
        tables, servers, of_tenants = adapters.tables, adapters.servers, adapters.of_tenants
        pins = ServicePins(tables.definitions, tables.servers, trusted=settings.trusted_services)
        announcements = AnnouncementHandlers(servers, adapters.on_bus, pins)

        async def reread() -> None:
            await of_tenants.refresh()
            await announcements.compare_again()

        rereading = Periodic("reading tenants' servers", reread, every_s=settings.reread_every_s)
        administration = ServerHandlers(
            table=tables.servers,
            secrets=tables.secrets,
            definitions=tables.definitions,
            servers=servers,
            of_tenants=of_tenants,
            settings=settings,
            confine=adapters.confine,
            publish=bus.send,
            authorize=adapters.auth.of,
            reread=rereading.now,
            announcements=announcements,
            tries=ServerTries(),
        )
        logins = AuthorizationHandlers(
            tables.servers, tables.authorizations, adapters.auth.client, administration.announce
        )
        search = SearchHandlers(servers, adapters.embeddings, tables.definitions)
        return cls(
            announcements=announcements,
            calls=CallHandlers(servers, running, tables.ledger, search.prepare),
            erased_calls=ErasedCalls(tables.store, logins.forget_user),
            impact=ImpactHandlers(bus, administration, tables.definitions, servers, of_tenants, arguments, settings),
            logins=logins,
            resources=ResourceHandlers(tables.servers, servers, of_tenants, settings),
            search=search,
            secrets=SecretHandlers(tables.secrets, tables.sealed, tables.servers.newest_key, administration.announce),
            servers=administration,
            rereading=rereading,
        )


def _programs(settings: Settings, tenant: str, jails: Jails) -> ProgramPolicy:
    return ProgramPolicy(
        tenant=tenant,
        jails=jails,
        mode=settings.programs,
        most=ProgramLimits.model_construct(
            memory_mb=settings.program_memory_mb,
            files_max=settings.program_files_max,
            file_mb=settings.program_file_mb,
        ),
        processes_max=settings.program_processes_max,
        cpu_s=settings.program_cpu_s,
        tmp_mb=settings.program_tmp_mb,
        commands=settings.commands,
        proxy=settings.proxy_url,
        ca_file=settings.ca_path,
    )


def _of_tenants(
    settings: Settings,
    tables: Tables,
    arguments: Arguments,
    auth: ServerAuthFactory,
    confine: Callable[[str], Confinement],
) -> TenantServers:
    def connect(tenant: str, server: ServerSettings) -> McpServer:
        pins = ServerPins(tables.definitions, tenant, server.name)
        more = {"confined": confine(tenant), "pins": pins, "authorize": auth.of(tenant, server, server.name)}
        if server.oauth is None or server.oauth.credentials == "tenant":
            return McpServer(server, settings, arguments, **more)
        return UserServer(server, settings, arguments, users=users(tenant, server), **more)

    def users(tenant: str, server: ServerSettings) -> UserConnections:
        def connect_user(user_id: str) -> McpServer:
            # What is called is what the tenant's own connection offers, where this user is shown the same.
            pins = UserPins(tables.definitions, tenant, server.name)
            authorize = auth.of(tenant, server, server.name, user_id)
            return McpServer(server, settings, arguments, confined=confine(tenant), pins=pins, authorize=authorize)

        async def logged_in_at(user_id: str) -> datetime | None:
            return await tables.authorizations.logged_in_at(TokenOwner(tenant, server.name, user_id))

        return UserConnections(server.name, settings, logged_in_at=logged_in_at, connect=connect_user)

    return TenantServers(
        tables.servers,
        connect,
        require_allowed=partial(require_allowed, settings=settings),
        taken=frozenset({BUILTIN, *(server.name for server in settings.servers)}),
        read_within_s=settings.list_within_s,
    )


def _builtin(
    settings: Settings, bus: Bus, arguments: Arguments, web: WebTools, images: ImageTools | None
) -> BuiltinServer:
    def asking(kind: type[T]) -> Callable[[Request], Awaitable[T]]:
        async def ask(request: Request) -> T:
            return await bus.ask(request, kind, timeout_s=settings.knowledge_timeout_s)

        return ask

    planning = PlanningTools(
        search=asking(SearchResult),
        context=asking(DocumentContext),
        graph=asking(TaskGraph),
        embed=asking(EmbeddedTexts),
    )
    memory = MemoryRequests(
        save=asking(FactsSaved),
        recall=asking(FactsRecalled),
        store=asking(FactsSaved),
        recall_insights=asking(FactsRecalled),
    )
    listed = builtin_settings(web, images)
    return BuiltinServer(lambda: make_builtin_server(planning, memory, web, images), listed, settings, arguments)


def _embeddings(settings: Settings, bus: Bus) -> ToolEmbeddings:
    async def embed(ask: EmbedTexts) -> EmbeddedTexts:
        return await bus.ask(ask, EmbeddedTexts, timeout_s=settings.knowledge_timeout_s)

    return ToolEmbeddings(
        embed, wait_s=settings.search_embedding_wait_s, kept_max_bytes=settings.search_vectors_max_bytes
    )


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
        ready_within_s=settings.connect_timeout_s + settings.list_within_s,
        missing=settings.missing_tools(),
    )
