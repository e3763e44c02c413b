"""What the registry does with the tools that a service announces on the bus."""

from __future__ import annotations

from dataclasses import dataclass

from wayline.contracts.bus_tools import Announced, AnnounceTools
from wayline.tool_registry.bus_tools import BusServices
from wayline.tool_registry.tenant_servers.mcp_servers import McpServers
from wayline.tool_registry.tenant_servers.service_pins import ServicePins

OLDER = "a newer instance of its service counts"


@dataclass(frozen=True)
class AnnouncementHandlers:
    """One coroutine a message."""

    servers: McpServers
    services: BusServices
    pins: ServicePins

    async def announce(self, announcement: AnnounceTools) -> Announced:
        """Offer a service's tools for the next seconds. Raises Conflict where a server has its name."""
        if announcement.leaving:
            left_out = self.services.hear(announcement)
            await self.services.compare(announcement.tenant, announcement.service, self.pins.withheld)
            return Announced(left_out=left_out)
        await self.servers.require_free(announcement.service, tenant=announcement.tenant)
        if self.services.counts(announcement):
            withheld = await self.pins.withheld(announcement)
        else:
            # Compared once it is the newest: two versions at once must not take turns in what waits.
            withheld = dict.fromkeys((tool.name for tool in announcement.tools), OLDER)
        left_out = self.services.hear(announcement, withheld)
        return Announced(left_out=left_out, held={name: why for name, why in withheld.items() if name not in left_out})

    async def compare_again(self) -> None:
        """Compare what services offer with what is approved by now."""
        self.pins.compare_again()
        await self.services.compare_again(self.pins.withheld)
