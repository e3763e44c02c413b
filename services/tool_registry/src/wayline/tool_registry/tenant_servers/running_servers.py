"""Tenants' own servers, kept connected as the table says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import structlog

from wayline.contracts.errors import Reject
from wayline.contracts.server_config import ServerConfig, ServerSettings
from wayline.store.sealing import CannotOpen
from wayline.tool_registry.servers.mcp_server import McpServer
from wayline.tool_registry.tenant_servers.saved_servers import of_tenant
from wayline.tool_registry.tenant_servers.server_table import ServerTable

log = structlog.get_logger()

RETIRE_S = 60.0
"""How long calls under way may go on with a server that was changed or removed."""

Key = tuple[str, str]


@dataclass(frozen=True)
class TenantServer:
    """A server of one revision: connected, or with the reason why it cannot even be tried."""

    revision: str
    pins: str
    """Of the definitions that were approved when its tools were asked for last."""
    server: McpServer | None
    problem: str | None = None


class TenantServers:
    """The enabled servers of every tenant, by tenant and name."""

    def __init__(
        self,
        table: ServerTable,
        connect: Callable[[str, ServerSettings], McpServer],
        *,
        require_allowed: Callable[[ServerConfig], None],
        taken: frozenset[str],
        read_within_s: float,
    ) -> None:
        self._table = table
        self._connect = connect
        self._require_allowed = require_allowed
        self.taken = taken
        """Names of the installation's servers: they count for every tenant."""
        self._read_within_s = read_within_s
        self._running: dict[Key, TenantServer] = {}
        self._read = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._leaving: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def refresh(self) -> None:
        """Read the table, connect what is new or has changed, and leave what is gone."""
        async with self._one_at_a_time:
            if self._stopping:
                return
            wanted = await self._table.revisions()
            configs = {key: revision.config for key, revision in wanted.items()}
            for key in [key for key, one in self._running.items() if configs.get(key) != one.revision]:
                self._leave(self._running.pop(key))
            for key, one in list(self._running.items()):
                if one.pins != wanted[key].pins:
                    self._running[key] = replace(one, pins=wanted[key].pins)
                    if one.server is not None:
                        one.server.learn_again()
            for tenant, name in wanted.keys() - self._running.keys():
                await self._begin(tenant, name, wanted[tenant, name].pins)
            self._read.set()

    async def of(self, tenant: str) -> Mapping[str, McpServer]:
        """Return a tenant's servers that are connected, or may be again, by name."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._read_within_s):
                await self._read.wait()
        return {
            name: one.server
            for (owner, name), one in self._running.items()
            if owner == tenant and one.server is not None
        }

    @property
    def is_read(self) -> bool:
        """Return whether the table was read since the start."""
        return self._read.is_set()

    def all(self) -> list[McpServer]:
        """Return the servers of every tenant that are connected, or may be again."""
        return [one.server for one in self._running.values() if one.server is not None]

    def running(self, tenant: str, name: str) -> McpServer | None:
        """Return one server, where it is enabled and can be tried."""
        one = self._running.get((tenant, name))
        return None if one is None else one.server

    def problem(self, tenant: str, name: str) -> str | None:
        """Return why an enabled server cannot be used; None: it can."""
        one = self._running.get((tenant, name))
        if one is None:
            return "it is being connected"
        return one.problem if one.server is None else one.server.problem

    def is_connecting(self, tenant: str, name: str) -> bool:
        """Return whether an enabled server is connected to for the first time since it was saved or enabled."""
        one = self._running.get((tenant, name))
        return one is None or (one.server is not None and not one.server.tried.is_set())

    def away(self, tenant: str) -> dict[str, str]:
        """Return why each enabled server of a tenant that cannot be used cannot be, by name."""
        names = [name for owner, name in self._running if owner == tenant]
        return {name: why for name in names if (why := self.problem(tenant, name)) is not None}

    async def stop(self) -> None:
        """Stop every server, and accept no new one."""
        self._stopping = True
        async with self._one_at_a_time:
            pass
        for task in self._leaving:
            task.cancel()
        servers = [one.server for one in self._running.values() if one.server is not None]
        await asyncio.gather(*(server.stop() for server in servers), *self._leaving, return_exceptions=True)

    async def _begin(self, tenant: str, name: str, pins: str) -> None:
        saved = await self._table.find(tenant, name)
        if saved is None or not saved.enabled:
            return
        key = (tenant, name)
        if name in self.taken:
            problem = "a server of this installation has the same name: save this one under another"
            self._running[key] = TenantServer(saved.revision, pins, None, problem)
            return
        try:
            config = self._table.whole(saved)
            # Again: what was allowed when it was saved may not be any more.
            self._require_allowed(config)
        except (CannotOpen, Reject) as error:
            log.error("a server cannot be used", tenant=tenant, server=name, why=str(error))
            self._running[key] = TenantServer(saved.revision, pins, None, str(error))
            return
        server = self._connect(tenant, of_tenant(config, name))
        server.start()
        self._running[key] = TenantServer(saved.revision, pins, server)

    def _leave(self, one: TenantServer) -> None:
        if one.server is None:
            return
        # Not awaited: a call under way may take a minute, and other servers wait for this turn.
        task = asyncio.create_task(one.server.retire(RETIRE_S), name=f"leaving mcp server {one.server.name}")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
