"""All MCP servers together: which tools a tenant has, and whose they are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress

from wayline.tool_registry.adapters.builtin_server import BuiltinServer
from wayline.tool_registry.adapters.mcp_server import McpServer
from wayline.tool_registry.adapters.tenant_servers import TenantServers
from wayline.tool_registry.catalogue import Tool
from wayline.tool_registry.settings import SEPARATOR

IDLE_S = 1.0
"""How long a start leaves the machine to others before it loads the MCP library: sooner if anybody asks."""


class McpServers:
    """The installation's servers, the built-in one first, and those of tenants."""

    def __init__(
        self,
        builtin: BuiltinServer,
        servers: Iterable[McpServer],
        *,
        of_tenants: TenantServers,
        list_within_s: float,
    ) -> None:
        self._servers: dict[str, BuiltinServer | McpServer] = {one.name: one for one in (builtin, *servers)}
        self._builtin = builtin
        self._of_tenants = of_tenants
        self._list_within_s = list_within_s
        self._wanted = asyncio.Event()
        self._starting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._starting = asyncio.create_task(self._start(), name="connecting mcp servers")

    async def _start(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wanted.wait(), IDLE_S)
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
        """Return every tool of a tenant by name, after giving servers that were never reached a moment to be."""
        self._wanted.set()
        servers = [*self._servers.values(), *(await self._of_tenants.of(tenant)).values()]
        new = [asyncio.create_task(u.tried.wait()) for u in servers if not u.tried.is_set()]
        if new:
            _, late = await asyncio.wait(new, timeout=self._list_within_s)
            for task in late:
                task.cancel()
        return {name: tool for server in servers for name, tool in server.tools.items()}

    def away(self, tenant: str) -> dict[str, str]:
        """Return why each server that a tenant cannot use cannot be used, by name."""
        away = {name: one.problem for name, one in self._servers.items() if one.problem is not None}
        return away | self._of_tenants.away(tenant)

    async def find(self, name: str, *, tenant: str) -> tuple[Tool | None, BuiltinServer | McpServer]:
        """Return a tool and its server; the server alone if it has no such tool, or has not been reached."""
        prefix, separator, _ = name.partition(SEPARATOR)
        server = self._servers.get(prefix) if separator else self._builtin
        if server is None:
            server = (await self._of_tenants.of(tenant)).get(prefix, self._builtin)
        if name not in server.tools and not server.tried.is_set():
            await self.tools(tenant)
        return server.tools.get(name), server
