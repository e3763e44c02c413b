"""What the registry does with the tools that a service announces on the bus."""

from __future__ import annotations

from dataclasses import dataclass

from wayline.contracts.bus_tools import Announced, AnnounceTools
from wayline.tool_registry.adapters.bus_tools import BusServices
from wayline.tool_registry.adapters.mcp_servers import McpServers


@dataclass(frozen=True)
class AnnouncementHandlers:
    """One coroutine a message."""

    servers: McpServers
    services: BusServices

    async def announce(self, announcement: AnnounceTools) -> Announced:
        """Offer a service's tools for the next seconds. Raises Conflict where a server has its name."""
        if not announcement.leaving:
            await self.servers.require_free(announcement.service, tenant=announcement.tenant)
        return Announced(left_out=self.services.hear(announcement))
