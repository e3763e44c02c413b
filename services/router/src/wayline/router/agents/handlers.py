"""Keeps the agents that tenants save."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from wayline.contracts.agents import (
    Agent,
    AgentHistory,
    AgentList,
    DeleteAgent,
    Deleted,
    GetAgent,
    GetAgentVersion,
    ListAgents,
    ListAgentVersions,
    PutAgent,
    RestoreAgent,
    SavedAgent,
)
from wayline.contracts.errors import Reject
from wayline.contracts.tool_use import SHOWN_MAX, AgentsUsing, AgentVersion, FindAgentsUsing
from wayline.contracts.tools import may_use
from wayline.router.agents.agent_table import AgentTable
from wayline.router.agents.bundled import bundled
from wayline.router.agents.check_agent import check_agent
from wayline.router.models.attachments import Attachments, fixed
from wayline.router.models.tenant_models import Catalogue
from wayline.router.tenants.known_tenants import KnownTenants
from wayline.routing.context_budget import system_warning


class AgentHandlers:
    """Answers requests for agents."""

    def __init__(
        self, table: AgentTable, *, tenants: KnownTenants, catalogue: Catalogue, attachments: Attachments
    ) -> None:
        self._table = table
        self._tenants = tenants
        self._catalogue = catalogue
        self._attachments = attachments

    async def on_get(self, request: GetAgent) -> Agent:
        """Return the newest version of an agent."""
        return await self._table.get(request.tenant, request.name)

    async def on_list(self, request: ListAgents) -> AgentList:
        """Return the newest version of each agent by name."""
        return await self._table.list(request.tenant, after=request.after, limit=request.limit)

    async def on_list_versions(self, request: ListAgentVersions) -> AgentHistory:
        """Return when an agent was saved, by whom, and what each version changed."""
        return await self._table.history(request.tenant, request.name, before=request.before, limit=request.limit)

    async def on_get_version(self, request: GetAgentVersion) -> SavedAgent:
        """Return one version of an agent."""
        return await self._table.version(request.tenant, request.name, request.number)

    async def on_put(self, request: PutAgent) -> Agent:
        """Save an agent that can do its work; what is pinned to it keeps the bytes of now."""
        await self._tenants.require(request.tenant)
        config = request.config
        try:
            check_agent(config, (await self._catalogue.all(request.tenant)).models)
        except Reject as error:
            if error.code != "unknown_model":
                raise
            check_agent(config, (await self._catalogue.all_now(request.tenant)).models)
        if config.pinned:
            pinned = fixed(config.pinned, await self._attachments.of(request.tenant, config.pinned))
            config = config.model_copy(update={"pinned": pinned})
        saved = await self._table.put(request.tenant, request.name, config, by=request.by)
        warning = system_warning(saved.config)
        return saved.model_copy(update={"warnings": (*saved.warnings, warning)}) if warning else saved

    async def on_delete(self, request: DeleteAgent) -> Deleted:
        """Retire an agent."""
        return Deleted(deleted=await self._table.delete(request.tenant, request.name))

    async def on_find_using(self, request: FindAgentsUsing) -> AgentsUsing:
        """Find the agents that may use at least one of some tools, among the current and among named versions."""
        total, shown = 0, list[AgentVersion]()
        async for page in self._table.pages(request.tenant):
            using = await asyncio.to_thread(_using, page, request.tools)
            total += len(using)
            shown += [_version(agent) for agent in using[: SHOWN_MAX - len(shown)]]
        versions = list[AgentVersion]()
        async for page in self._table.versions(request.tenant, request.versions):
            versions += map(_version, await asyncio.to_thread(_using, page, request.tools))
        return AgentsUsing(total=total, agents=tuple(shown), versions=tuple(versions))

    async def on_restore(self, request: RestoreAgent) -> Agent:
        """Bring an agent back that was removed or changed."""
        await self._tenants.require(request.tenant)
        return await self._table.restore(request.tenant, request.name, bundled().get(request.name), by=request.by)


def _using(agents: Sequence[Agent], tools: Sequence[str]) -> list[Agent]:
    return [
        agent
        for agent in agents
        if any(may_use(name, patterns=agent.config.tools, off=agent.config.tools_off) for name in tools)
    ]


def _version(agent: Agent) -> AgentVersion:
    return AgentVersion(name=agent.name, version=agent.version)
