"""Report what a change of a server touches: agents, parked jobs, recorded calls, each from the service that owns it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from wayline.chassis import Bus
from wayline.contracts.errors import Conflict, NotFound
from wayline.contracts.mcp_servers import GetImpact, ServerImpact
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.tool_use import (
    AgentsUsing,
    FindAgentsUsing,
    FindParkedJobs,
    GetToolUse,
    ListRecordedCalls,
    ParkedJobs,
    RecordedCalls,
    ToolUse,
)
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.definition_table import DefinitionTable
from wayline.tool_registry.definitions.impact import CallCheck, ToolChange, compared
from wayline.tool_registry.definitions.tool_catalogue import own_names
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.tenant_servers.handlers.servers import ServerHandlers
from wayline.tool_registry.tenant_servers.mcp_servers import McpServers
from wayline.tool_registry.tenant_servers.running_servers import TenantServers

RECORDED_DAYS = 30
CALLS_CHECKED_MAX = 50_000
"""Of recorded calls, the newest ones; the answer counts the others as unchecked."""
ASK_S = 20.0


@dataclass(frozen=True)
class ImpactHandlers:
    """Answers what a change touches."""

    bus: Bus
    administration: ServerHandlers
    definitions: DefinitionTable
    servers: McpServers
    of_tenants: TenantServers
    arguments: Arguments
    settings: Settings

    async def impact(self, ask: GetImpact) -> ServerImpact:
        """Return who uses a server's tools, and which recorded calls would fail. Raises NotFound or Conflict."""
        changes = await self._changes(ask)
        tools, since = tuple(changes), datetime.now(UTC) - timedelta(days=RECORDED_DAYS)
        use = await self._ask(GetToolUse(tenant=ask.tenant, tools=tools, since=since), ToolUse)
        using = await self._ask(FindAgentsUsing(tenant=ask.tenant, tools=tools, versions=use.parked), AgentsUsing)
        parked = await self._ask(FindParkedJobs(tenant=ask.tenant, tools=tools, agents=using.versions), ParkedJobs)
        check = await self.arguments.beside(ask.tenant, partial(CallCheck, changes, self.arguments))
        await self._check(ask.tenant, check, since)
        judged = check.impact({one.tool: one.calls for one in use.counts})
        return ServerImpact(
            name=ask.name,
            since=since,
            tools=judged,
            agents_total=using.total,
            agents=using.agents,
            parked_total=parked.total,
            parked=parked.jobs,
            calls=sum(one.calls for one in judged),
            jobs=use.jobs,
            would_fail=sum(one.would_fail for one in judged),
            unchecked=sum(one.unchecked for one in judged),
            failing=tuple(check.failing),
        )

    async def _check(self, tenant: str, check: CallCheck, since: datetime) -> None:
        """Compare recorded calls page by page, up to a limit."""
        if not check.tools:
            return
        taken, cursor = 0, None
        while taken < CALLS_CHECKED_MAX:
            ask = ListRecordedCalls(tenant=tenant, tools=tuple(check.tools), since=since, cursor=cursor)
            page = await self._ask(ask, RecordedCalls)
            await self.arguments.beside(tenant, partial(check.take, page.calls))
            taken, cursor = taken + len(page.calls), page.next_cursor
            if cursor is None or check.is_over:
                return

    async def _changes(self, ask: GetImpact) -> Mapping[str, ToolChange]:
        """Return how each tool of a server differs from what was approved, by our name for it."""
        one = self.servers.of_installation.get(ask.name)
        if one is not None and ask.config is None:
            # Not made of the server's name: built-in tools have no prefix.
            return dict.fromkeys(one.tools, ToolChange("unchanged"))
        found = await self._of_tenant(ask)
        names = own_names(ask.name, found)
        return {names[name]: change for name, change in found.items()}

    async def _of_tenant(self, ask: GetImpact) -> Mapping[str, ToolChange]:
        """Return the same of a server or service of the tenant's own, by the server's name for each tool."""
        if ask.config is not None:
            return await self._of_configuration(ask.tenant, ask.name, ask.config)
        if await self.administration.table.find(ask.tenant, ask.name):
            found = await self._of_pins(ask.tenant, ask.name, partial(self._is_offered, ask.tenant, ask.name))
            running = self.of_tenants.running(ask.tenant, ask.name)
            return found if running is None else _unusable(found, running.left_out)
        if ask.name in await self.administration.services_of(ask.tenant):
            return await self._of_service(ask.tenant, ask.name)
        raise NotFound("server", ask.name)

    async def _of_service(self, tenant: str, name: str) -> Mapping[str, ToolChange]:
        """Return how the tools of a service on the bus differ from what was approved."""
        announcements = self.administration.announcements
        service = announcements.services.of(tenant).get(name)
        newest = None if service is None else service.newest
        announced = None if newest is None else {tool.name for tool in newest.tools}
        if announcements.pins.trusts(tenant, name):
            # What it announces counts at once.
            return {tool: ToolChange("unchanged") for tool in announced or ()}
        return await self._of_pins(tenant, name, lambda tool: announced is None or tool in announced)

    async def _of_pins(self, tenant: str, name: str, is_offered: Callable[[str], bool]) -> Mapping[str, ToolChange]:
        """Compare the definitions that wait with those that were approved; `is_offered` says which are gone."""
        pinned = await self.definitions.of(tenant, name)
        approved = {tool.name: tool.approved for tool in pinned if tool.approved is not None}
        offered = {
            tool.name: tool.waiting or tool.approved or ""
            for tool in pinned
            if tool.approved is None or is_offered(tool.name)
        }
        return compared(approved, offered, {tool.name: tool.schema for tool in pinned})

    def _is_offered(self, tenant: str, name: str, tool: str) -> bool:
        """Return whether a server offers a tool; one that is not connected offers what it did."""
        running = self.of_tenants.running(tenant, name)
        if running is None or running.problem is not None:
            return True
        known = {*running.left_out, *(one.offered_as for one in running.tools.values())}
        return tool in known or running.names.get(tool) in running.withheld

    async def _of_configuration(self, tenant: str, name: str, config: ServerConfig) -> Mapping[str, ToolChange]:
        """Connect to a server as it would be saved, and compare what it offers. Raises Conflict."""
        server = await self.administration.complete(tenant, name, config)
        authorize = await self.administration.login_for(tenant, name, server)
        with self.administration.tries.begun(tenant):
            tried = await self.administration.tried(tenant, server, authorize)
        if not tried.report.ok:
            why = tried.report.why
            raise Conflict(f"{name} cannot be used as it would be saved, so nothing can be compared: {why}")
        pins = await self.definitions.pins(tenant, name)
        approved = {} if pins is None else {tool: sha256 for tool, sha256 in pins.approved.items() if tool}
        found = compared(
            approved,
            {one.name: one.sha256 for one in tried.definitions},
            {one.name: one.schema for one in tried.definitions},
        )
        return _unusable(found, tried.left_out)

    async def _ask(self, request: Any, reply: Any) -> Any:
        return await self.bus.ask(request, reply, timeout_s=ASK_S)


def _unusable(changes: Mapping[str, ToolChange], left_out: Mapping[str, str]) -> dict[str, ToolChange]:
    """Return changes with why a tool cannot be called as it is defined."""
    return {name: replace(one, unusable=left_out.get(name, "")) for name, one in changes.items()}
