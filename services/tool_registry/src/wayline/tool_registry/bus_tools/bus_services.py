"""The services that offer tools on the bus, by tenant: kept while they announce themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from wayline.chassis import Bus
from wayline.contracts.bus_tools import AnnounceTools, WantTools
from wayline.contracts.errors import Reject
from wayline.tool_registry.bus_tools.bus_calls import BusCalls
from wayline.tool_registry.bus_tools.bus_service import BusService
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.settings import Settings

KEPT_S = 600.0
"""How long a service that went away is known as one that is away; later it was never there."""
LEARNING_S = 2.0
"""How long after its start a registry takes a service that it does not know for one that it has not heard yet."""


class BusServices:
    """Knows the services of every tenant by their announcements."""

    def __init__(
        self, bus: Bus, settings: Settings, arguments: Arguments, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._bus = bus
        self._calls = BusCalls(bus)
        self._settings = settings
        self._arguments = arguments
        self._now = now
        self._services: dict[str, dict[str, BusService]] = {}
        self._learning_until = now() + LEARNING_S
        self._heard = asyncio.Event()

    async def start(self) -> None:
        """Have every service announce itself now."""
        self._learning_until = self._now() + LEARNING_S
        await self._bus.send(WantTools())

    def counts(self, announcement: AnnounceTools) -> bool:
        """Return whether an announcement is by the newest instance of its service, or offers what that one does."""
        service = self._services.get(announcement.tenant, {}).get(announcement.service)
        known = None if service is None else service.newest
        if known is None or announcement.started_at >= known.started_at:
            return True
        return (announcement.tools, announcement.instructions) == (known.tools, known.instructions)

    async def compare_again(self, withheld: Callable[[AnnounceTools], Awaitable[dict[str, str]]]) -> None:
        """Compare what every service offers with what is approved by now."""
        for services in list(self._services.values()):
            for service in list(services.values()):
                await _compare(service, withheld)

    async def compare(
        self, tenant: str, name: str, withheld: Callable[[AnnounceTools], Awaitable[dict[str, str]]]
    ) -> None:
        """Compare what one service offers now: its newest instance has left."""
        if (service := self._services.get(tenant, {}).get(name)) is not None:
            await _compare(service, withheld)

    def hear(self, announcement: AnnounceTools, withheld: dict[str, str] | None = None) -> dict[str, str]:
        """Note an announcement and what of it is withheld, and return why tools of it are left out.

        Raises Reject where there are too many.
        """
        services = self._services.setdefault(announcement.tenant, {})
        self._forget(services)
        service = services.get(announcement.service)
        if service is None and announcement.leaving:
            return {}
        if service is None:
            most = self._settings.servers_per_tenant_max
            if len(services) >= most:
                raise Reject(f"the tenant has {most} services on the bus, the most there may be", code="too_many")
            service = services[announcement.service] = BusService(
                announcement.tenant, announcement.service, self._calls, self._settings, self._arguments, now=self._now
            )
        left_out = service.hear(announcement, withheld or {})
        self._heard.set()
        return left_out

    def of(self, tenant: str) -> dict[str, BusService]:
        """Return a tenant's services by name, those that went away not long ago too."""
        services = self._services.get(tenant, {})
        self._forget(services)
        return dict(sorted(services.items()))

    async def find(self, tenant: str, name: str) -> BusService | None:
        """Return a service; a registry that has just started waits for its first announcement."""
        while name not in (known := self.of(tenant)) and (left := self._learning_until - self._now()) > 0:
            self._heard.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._heard.wait()
        return known.get(name)

    def _forget(self, services: dict[str, BusService]) -> None:
        before = self._now() - KEPT_S
        for name in [name for name, one in services.items() if one.last_heard < before]:
            del services[name]


async def _compare(service: BusService, withheld: Callable[[AnnounceTools], Awaitable[dict[str, str]]]) -> None:
    if (announced := service.newest) is None:
        return
    # Where an MCP server has taken its name, the service does not count.
    with suppress(Reject):
        service.hold(await withheld(announced))
