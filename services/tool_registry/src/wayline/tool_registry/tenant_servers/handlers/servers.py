"""What the registry does with each message about servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from wayline.contracts.base import Message
from wayline.contracts.errors import Conflict, NotFound, Reject
from wayline.contracts.mcp_servers import (
    ApproveDefinitions,
    DeleteServer,
    EnableServer,
    GetServer,
    ListServers,
    PutServer,
    ServerDeleted,
    ServerList,
    ServerReport,
    ServersChanged,
    ServerView,
    ServiceView,
    State,
    TrySavedServer,
    TryServer,
)
from wayline.contracts.server_config import ServerConfig, ServerSettings
from wayline.store.sealing import CannotOpen
from wayline.tool_registry.builtin_tools.builtin_server import BuiltinServer
from wayline.tool_registry.calls.tool_servers import NEEDS_LOGIN
from wayline.tool_registry.connection.server_transport import Confinement, MakeAuth
from wayline.tool_registry.connection.try_connection import TriedServer, try_connection
from wayline.tool_registry.definitions.definition_table import DefinitionTable
from wayline.tool_registry.definitions.left_out_tools import left_out_lines
from wayline.tool_registry.definitions.undeclared_effects import SHOWN_MAX, advice, undeclared_tools
from wayline.tool_registry.secrets.secret_keys import require_key
from wayline.tool_registry.secrets.secret_references import names_of, require_references, secrets_in_clear
from wayline.tool_registry.secrets.secret_table import SecretTable
from wayline.tool_registry.servers.mcp_server import McpServer
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.tenant_servers.handlers.announcements import AnnouncementHandlers
from wayline.tool_registry.tenant_servers.mcp_servers import McpServers
from wayline.tool_registry.tenant_servers.running_servers import TenantServers
from wayline.tool_registry.tenant_servers.saved_servers import (
    SavedServer,
    Secrets,
    filled,
    has_masks,
    is_untrusted,
    kept,
    of_tenant,
    require_allowed,
    require_name,
    split,
)
from wayline.tool_registry.tenant_servers.server_table import ServerTable
from wayline.tool_registry.tenant_servers.server_tries import ServerTries

UNNAMED = "unsaved"
LISTED_WITHIN_S = 3.0
"""How long a question about a server that was just saved waits for its tools."""


@dataclass(frozen=True)
class ServerHandlers:
    """One coroutine a message."""

    table: ServerTable
    secrets: SecretTable
    definitions: DefinitionTable
    servers: McpServers
    of_tenants: TenantServers
    settings: Settings
    confine: Callable[[str], Confinement]
    """Returns what a tenant's servers may reach and use."""
    publish: Callable[[Message], Awaitable[None]]
    """Publishes what every replica hears."""
    authorize: Callable[[str, ServerConfig, str], MakeAuth | None]
    """Returns how the requests to a saved server are authenticated, by its tenant and name."""
    reread: Callable[[], None]
    """Has tenants' servers read again soon, and services on the bus compared."""
    announcements: AnnouncementHandlers
    tries: ServerTries

    async def put(self, ask: PutServer) -> ServerView:
        """Save a server, and connect to it where it is enabled."""
        config = await self._complete(ask.tenant, ask.name, ask.config)
        masked, secrets = split(config)
        require_key(secrets, self.table.newest_key)
        await self.table.put(ask.tenant, ask.name, masked, secrets, enabled=ask.enabled, shown=ask.shown)
        await self._changed(ask.tenant)
        view = await self._view(ask.tenant, ask.name)
        return view.model_copy(update={"warnings": secrets_in_clear(config)})

    async def try_server(self, ask: TryServer) -> ServerReport:
        """Connect to a server that is not saved."""
        with self.tries.begun(ask.tenant):
            config = await self._complete(ask.tenant, ask.name, ask.config)
            authorize = await self.login_for(ask.tenant, ask.name, config)
            server = of_tenant(config, ask.name or UNNAMED)
            tried = await self.tried(ask.tenant, server, authorize)
        # A program may take longer to start than a saved server's first answer waits for its tools.
        told = "" if ask.name is None else advice(ask.name, tried.undeclared)
        return tried.report.model_copy(update={"advice": told})

    async def login_for(self, tenant: str, name: str | None, config: ServerConfig) -> MakeAuth | None:
        """Return how an unsaved configuration is authenticated by the saved server's login; None: not by it.

        A login was given for one URL, and is shown to no other.
        """
        stored = None if name is None else await self.table.find(tenant, name)
        if name is None or stored is None or stored.config.oauth is None:
            return None
        # The query may hold a key, and is a mask in the stored configuration.
        saved_url = self.table.whole(stored).url
        return self.authorize(tenant, config, name) if config.url == saved_url else None

    async def complete(self, tenant: str, name: str, config: ServerConfig) -> ServerSettings:
        """Return a server as it would be saved, with its stored secrets. Raises Reject."""
        return of_tenant(await self._complete(tenant, name, config), name)

    async def try_saved(self, ask: TrySavedServer) -> ServerReport:
        """Connect to a saved server once more."""
        stored = await self.table.find(ask.tenant, ask.name)
        if stored is None:
            raise NotFound("server", ask.name)
        try:
            config = self.table.whole(stored)
        except CannotOpen as error:
            return ServerReport(ok=False, why=str(error))
        require_allowed(config, self.settings)
        authorize = self.authorize(ask.tenant, config, ask.name)
        with self.tries.begun(ask.tenant):
            tried = await self.tried(ask.tenant, of_tenant(config, ask.name), authorize)
        return tried.report

    async def tried(self, tenant: str, server: ServerSettings, authorize: MakeAuth | None) -> TriedServer:
        """Connect to a server once, within what a tenant's server may."""
        return await try_connection(server, self.settings, confined=self.confine(tenant), authorize=authorize)

    async def list(self, ask: ListServers) -> ServerList:
        """Return the installation's servers and the tenant's own."""
        waiting = await self.definitions.waiting(ask.tenant)
        own = [self._shown(saved, waiting.get(saved.name, 0)) for saved in await self.table.of(ask.tenant)]
        taken = {view.name for view in own}
        on_bus = [
            self._service(ask.tenant, name, since, waiting.get(name, 0))
            for name, since in (await self.services_of(ask.tenant)).items()
            if name not in taken
        ]
        return ServerList(servers=tuple(sorted([*self._of_installation(), *own, *on_bus], key=lambda one: one.name)))

    async def get(self, ask: GetServer) -> ServerView:
        """Return one server with the definitions that wait for approval."""
        for view in self._of_installation():
            if view.name == ask.name:
                left_out = self.servers.of_installation[ask.name].left_out
                return view.model_copy(update={"problems": left_out_lines(left_out)})
        if ask.settled and (running := self.of_tenants.running(ask.tenant, ask.name)) is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LISTED_WITHIN_S):
                    await running.listed.wait()
        return await self._view(ask.tenant, ask.name, ask.tools)

    async def delete(self, ask: DeleteServer) -> ServerDeleted:
        """Remove a server and leave it."""
        require_name(ask.name, self.of_tenants.taken)
        deleted = await self.table.delete(ask.tenant, ask.name)
        if deleted:
            self.announcements.pins.forget(ask.tenant, ask.name)
            await self._changed(ask.tenant)
        return ServerDeleted(deleted=deleted)

    async def enable(self, ask: EnableServer) -> ServerView:
        """Enable a server, or disable it and leave it."""
        require_name(ask.name, self.of_tenants.taken)
        if not await self.table.enable(ask.tenant, ask.name, enabled=ask.enabled):
            raise NotFound("server", ask.name)
        await self._changed(ask.tenant)
        return await self._view(ask.tenant, ask.name)

    async def approve(self, ask: ApproveDefinitions) -> ServerView:
        """Approve definitions that wait, and have every replica use them."""
        require_name(ask.name, self.of_tenants.taken)
        if await self.table.find(ask.tenant, ask.name) is None and ask.name not in await self.table.services_of(
            ask.tenant
        ):
            raise NotFound("server", ask.name)
        await self.definitions.approve(ask.tenant, ask.name, ask.sha256)
        await self._changed(ask.tenant)
        return await self._view(ask.tenant, ask.name)

    async def changed(self, _: ServersChanged) -> None:
        """Read tenants' servers again."""
        self.reread()

    async def _complete(self, tenant: str, name: str | None, config: ServerConfig) -> ServerConfig:
        """Return a configuration with its stored secrets, where the tenant may use it. Raises Reject."""
        stored = None
        if name is not None:
            require_name(name, self.of_tenants.taken)
            stored = await self.table.find(tenant, name)
        try:
            config = filled(config, self._kept(stored, config))
        except CannotOpen as error:
            raise Conflict(f"{error}; send every value of `headers` and `env` anew") from None
        require_allowed(config, self.settings)
        require_references(config)
        if missing := await self.secrets.missing(tenant, names_of(config)):
            raise Reject(
                f"there is no secret {missing[0]!r}: `wayline mcp secrets put {missing[0]}` stores one",
                code="unknown_secret",
                status=422,
            )
        return config

    def _kept(self, stored: SavedServer | None, config: ServerConfig) -> Secrets:
        """Return what the masks of a configuration stand for. Raises CannotOpen."""
        if stored is None or not has_masks(config):
            return {}
        return kept(self.table.secrets(stored), config, saved=stored.config)

    async def services_of(self, tenant: str) -> dict[str, datetime | None]:
        """Return when each service on the bus was heard first, by name; None: it is trusted, and nothing is kept."""
        heard = self.announcements.services.of(tenant)
        trusted = dict.fromkeys(name for name in heard if self.announcements.pins.trusts(tenant, name))
        return {**trusted, **await self.table.services_of(tenant)}

    async def announce(self, tenant: str) -> None:
        """Read the tenant's servers again here, and have every other replica do so."""
        await self._changed(tenant)

    async def _changed(self, tenant: str) -> None:
        # Here at once, for the answer; the others hear of it.
        await self.of_tenants.refresh()
        await self.announcements.compare_again()
        await self.publish(ServersChanged(tenant=tenant))

    async def _view(self, tenant: str, name: str, tools: Sequence[str] = ()) -> ServerView:
        """Return a server with the definitions of some tools that wait for approval; without any, the first ones."""
        saved = await self.table.find(tenant, name)
        services = {} if saved is not None else await self.services_of(tenant)
        if saved is None and name not in services:
            raise NotFound("server", name)
        waiting = (await self.definitions.waiting(tenant)).get(name, 0)
        changes = await self.definitions.changes(tenant, name, tools) if waiting else ()
        view = self._service(tenant, name, services[name], waiting) if saved is None else self._shown(saved, waiting)
        running = self.of_tenants.running(tenant, name)
        if saved is None or running is None:
            return view.model_copy(update={"changes": changes})
        undeclared = undeclared_tools(running.tools.values(), saved.config.effects)
        more = {"undeclared": tuple(undeclared[:SHOWN_MAX]), "advice": advice(name, undeclared)}
        return view.model_copy(update={"changes": changes, "problems": left_out_lines(running.left_out), **more})

    def _service(self, tenant: str, name: str, since: datetime | None, waiting: int) -> ServerView:
        service = self.announcements.services.of(tenant).get(name)
        newest = None if service is None else service.newest
        if service is None or newest is None:
            seen = ServiceView(last_seen=None if service is None else service.last_seen)
            why = "no instance of it announces its tools"
            return ServerView(name=name, state=State.AWAY, why=why, quarantined=waiting, saved_at=since, service=seen)
        return ServerView(
            name=name,
            state=State.CONNECTED,
            tools=len(service.tools),
            quarantined=waiting,
            saved_at=since,
            service=ServiceView(
                version=newest.service_version,
                instances=service.instances,
                last_seen=service.last_seen,
                tools=tuple(sorted(service.tools)),
            ),
        )

    def _shown(self, saved: SavedServer, waiting: int) -> ServerView:
        running = self.of_tenants.running(saved.tenant, saved.name)
        state, why = self._state(saved)
        return ServerView(
            name=saved.name,
            enabled=saved.enabled,
            state=state,
            why=why,
            tools=0 if running is None else len(running.tools),
            left_out=0 if running is None else len(running.left_out),
            quarantined=waiting,
            # Said in full: a build of before reads no None there.
            config=saved.config.model_copy(update={"untrusted": is_untrusted(saved.config)}),
            saved_at=saved.saved_at,
        )

    def _state(self, saved: SavedServer) -> tuple[State, str]:
        """Return a server's state, and why it is away."""
        if not saved.enabled:
            return State.DISABLED, ""
        why = self.of_tenants.problem(saved.tenant, saved.name)
        if why is None:
            return State.CONNECTED, ""
        if self.of_tenants.is_connecting(saved.tenant, saved.name):
            return State.CONNECTING, ""
        return State.NEEDS_AUTHORIZATION if NEEDS_LOGIN in why else State.AWAY, why

    def _of_installation(self) -> list[ServerView]:
        return [self._installed(one) for one in self.servers.of_installation.values()]

    def _installed(self, one: BuiltinServer | McpServer) -> ServerView:
        why = one.problem
        state = State.CONNECTED if why is None else State.AWAY if one.tried.is_set() else State.CONNECTING
        return ServerView(
            name=one.name,
            of="installation",
            state=state,
            why=(why or "") if state is State.AWAY else "",
            tools=len(one.tools),
            left_out=len(one.left_out),
        )
