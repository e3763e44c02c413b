"""Pinned definitions of services on the bus: compared whenever a service announces others, and every so often."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from wayline.contracts.bus_tools import AnnounceTools, BusTool
from wayline.contracts.errors import Conflict
from wayline.store import PostgresUnavailable
from wayline.tool_registry.definitions.definition_table import DefinitionTable, ServerPins
from wayline.tool_registry.definitions.definitions import Definition, definition_of, fingerprint, instructions_of
from wayline.tool_registry.errors import NotBegun
from wayline.tool_registry.tenant_servers.server_table import ServerTable

COMPARED_EVERY_S = 30.0
"""How soon an approval counts in a replica that did not hear of it."""
AWAY = "its definition cannot be compared with the one that was approved: Postgres is away"


@dataclass
class _Comparison:
    """The last comparison of a service, and its result."""

    pins: ServerPins
    fingerprint: str = ""
    withheld: dict[str, str] | None = None
    until: float = 0.0


class ServicePins:
    """Compares what services announce with what is approved, by tenant and service."""

    def __init__(
        self,
        table: DefinitionTable,
        servers: ServerTable,
        *,
        trusted: Iterable[str] = (),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the tables, and in `trusted` patterns of `tenant/service` whose changed definitions need no approval."""
        self._table = table
        self._servers = servers
        self._trusted = tuple(trusted)
        self._now = now
        self._compared: dict[tuple[str, str], _Comparison] = {}

    def trusts(self, tenant: str, service: str) -> bool:
        """Return whether what a service announces needs no approval."""
        return any(fnmatchcase(f"{tenant}/{service}", pattern) for pattern in self._trusted)

    async def withheld(self, announcement: AnnounceTools) -> dict[str, str]:
        """Return why each tool that must not be used may not be, by the service's own name for it.

        Raises Conflict where an MCP server has the service's name, or there are too many.
        """
        key = announcement.tenant, announcement.service
        if self.trusts(*key):
            return {}
        if (known := self._compared.get(key)) is None:
            known = self._compared[key] = _Comparison(ServerPins(self._table, *key))
        offered = definitions_of(announcement)
        now_offered = fingerprint({one.name: one.sha256 for one in offered})
        if known.withheld is not None and known.fingerprint == now_offered and self._now() < known.until:
            return known.withheld
        try:
            await self._put(*key)
            withheld = await known.pins.withheld(offered)
        except (PostgresUnavailable, NotBegun):
            unchanged = known.withheld is not None and known.fingerprint == now_offered
            return known.withheld if unchanged and known.withheld is not None else {one.name: AWAY for one in offered}
        known.fingerprint, known.withheld, known.until = now_offered, withheld, self._now() + COMPARED_EVERY_S
        return withheld

    def compare_again(self) -> None:
        """Have every service compared when it announces itself next: something was approved."""
        for known in self._compared.values():
            known.until = 0.0

    def forget(self, tenant: str, service: str) -> None:
        """Forget a service whose definitions were removed."""
        self._compared.pop((tenant, service), None)

    async def _put(self, tenant: str, service: str) -> None:
        # A second time, because the first does not see a row that another replica writes meanwhile.
        kind = await self._servers.put_service(tenant, service) or await self._servers.put_service(tenant, service)
        if kind is None:
            raise Conflict("the tenant knows as many services as it may: remove one with `wayline mcp remove` first")
        if kind != "bus":
            raise Conflict(f"{service!r} is the name of an MCP server: give the service another name")


def definitions_of(announcement: AnnounceTools) -> list[Definition]:
    """Return what of an announcement is pinned: what a model reads, and what decides how a call is treated."""
    instructions = announcement.instructions
    tools = [_definition(tool) for tool in sorted(announcement.tools, key=lambda tool: tool.name)]
    return [*tools, instructions_of(instructions, shown=instructions)]


def _definition(tool: BusTool) -> Definition:
    raw = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "effect": tool.effect.value,
        "ask": tool.ask,
        "untrusted": tool.untrusted,
    }
    return definition_of(raw, shown=raw)
