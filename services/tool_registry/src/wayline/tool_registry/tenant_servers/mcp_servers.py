"""All servers together, of MCP and on the bus: find the tools that a tenant has, and the server of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from wayline.contracts.errors import Conflict, Unavailable
from wayline.contracts.tools import tool_named
from wayline.tool_registry.builtin_tools.builtin_server import BuiltinServer
from wayline.tool_registry.bus_tools import BusService, BusServices
from wayline.tool_registry.definitions.tool_catalogue import Tool
from wayline.tool_registry.servers.mcp_server import McpServer
from wayline.tool_registry.settings import SEPARATOR
from wayline.tool_registry.tenant_servers.running_servers import TenantServers

IDLE_S = 1.0
"""How long a start leaves the machine to others before it loads the MCP library: sooner if tools are asked for."""
NAMED_MAX = 5
"""Servers that a registry which is not ready names."""


class McpServers:
    """The installation's servers, the built-in one first, those of tenants, and tenants' services on the bus."""

    def __init__(
        self,
        builtin: BuiltinServer,
        servers: Iterable[McpServer],
        *,
        of_tenants: TenantServers,
        on_bus: BusServices,
        list_within_s: float,
        ready_within_s: float,
        missing: Mapping[str, str],
    ) -> None:
        """Take the servers, and in `missing` why each built-in tool that is not configured is not there, by name."""
        self.missing = missing
        self._servers: dict[str, BuiltinServer | McpServer] = {one.name: one for one in (builtin, *servers)}
        self._builtin = builtin
        self._of_tenants = of_tenants
        self._on_bus = on_bus
        self._list_within_s = list_within_s
        self._wanted = asyncio.Event()
        self._starting: asyncio.Task[None] | None = None
        self._was_ready = False
        self._ready_at_most = time.monotonic() + ready_within_s

    async def start(self) -> None:
        self._starting = asyncio.create_task(self._start(), name="connecting mcp servers")
        await self._on_bus.start()

    async def _start(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_S):
                await self._wanted.wait()
        for server in self._servers.values():
            server.start()

    async def stop(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
        await asyncio.gather(self._of_tenants.stop(), *(server.stop() for server in self._servers.values()))

    @property
    def of_installation(self) -> Mapping[str, BuiltinServer | McpServer]:
        """Return the servers that every tenant has, by name."""
        return self._servers

    async def tools(self, tenant: str) -> dict[str, Tool]:
        """Return every tool of a tenant by name, after giving servers whose tools are not known a moment."""
        self._wanted.set()
        servers = await self._of(tenant)
        new = [asyncio.create_task(one.listed.wait()) for one in servers if not one.listed.is_set()]
        if new:
            _, late = await asyncio.wait(new, timeout=self._list_within_s)
            for task in late:
                task.cancel()
        return {name: tool for server in servers for name, tool in server.tools.items()}

    async def instructions(self, tenant: str) -> dict[str, str]:
        """Return the instructions of each of a tenant's servers, by name."""
        return {server.name: server.instructions for server in await self._of(tenant)}

    async def require_free(self, name: str, *, tenant: str) -> None:
        """Refuse the name of a server to a service on the bus. Raises Conflict."""
        if name in self._servers or name in await self._of_tenants.of(tenant):
            raise Conflict(f"{name!r} is the name of an MCP server: give the service another name")

    async def _of(self, tenant: str) -> list[BuiltinServer | McpServer | BusService]:
        """Return a tenant's servers; a service on the bus that has the name of an MCP server does not count."""
        servers = {**self._servers, **await self._of_tenants.of(tenant)}
        return [*servers.values(), *(one for name, one in self._on_bus.of(tenant).items() if name not in servers)]

    @property
    def is_read(self) -> bool:
        """Return whether it is known which servers tenants have."""
        return self._of_tenants.is_read

    async def unknown(self, tenant: str) -> dict[str, bool]:
        """Return the servers of a tenant whose tools are not known, and whether each was tried, by name."""
        return {one.name: one.tried.is_set() for one in await self._of(tenant) if not one.known}

    async def check_tried(self) -> None:
        """Show that every server was tried since the start. Raises Unavailable, for a while at most."""
        self._wanted.set()
        waiting = [one.name for one in (*self._servers.values(), *self._of_tenants.all()) if not one.tried.is_set()]
        late = time.monotonic() > self._ready_at_most
        if late or (self.is_read and not waiting):
            self._was_ready = True
        if not self._was_ready:
            names = ", ".join(sorted(waiting)[:NAMED_MAX]) or "those of tenants"
            raise Unavailable("tool-registry", detail=f"it is connecting MCP servers: {names}")

    def away(self, tenant: str) -> dict[str, str]:
        """Return why each server that a tenant cannot use cannot be used, by name."""
        away = {name: one.problem for name, one in self._servers.items() if one.problem is not None}
        gone = {name: one.problem for name, one in self._on_bus.of(tenant).items() if one.problem is not None}
        return gone | away | self._of_tenants.away(tenant)

    async def find(self, name: str, *, tenant: str) -> tuple[Tool | None, BuiltinServer | McpServer | BusService]:
        """Return a tool and its server; the server alone if it has no such tool, or has not been reached."""
        name = tool_named(name)
        prefix, separator, _ = name.partition(SEPARATOR)
        server = self._servers.get(prefix) if separator else self._builtin
        if server is None:
            own = (await self._of_tenants.of(tenant)).get(prefix)
            server = own or await self._on_bus.find(tenant, prefix) or self._builtin
        if name not in server.tools and not server.tried.is_set():
            await self.tools(tenant)
        return server.tools.get(name), server
