"""Keeps the agents that tenants save."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from wayline.contracts.agent_labels import DEFAULT_LABEL, AgentLabel, DeleteAgentLabel, LabelRemoved, PutAgentLabel
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
from wayline.router.agents.label_table import LabelTable
from wayline.router.models.attachments import Attachments, fixed
from wayline.router.models.tenant_models import Catalogue
from wayline.router.tenants.known_tenants import KnownTenants
from wayline.routing.context_budget import system_warning


class AgentHandlers:
    """Answers requests for agents."""

    def __init__(
        self,
        table: AgentTable,
        labels: LabelTable,
        *,
        tenants: KnownTenants,
        catalogue: Catalogue,
        attachments: Attachments,
    ) -> None:
        self._table = table
        self._labels = labels
        self._tenants = tenants
        self._catalogue = catalogue
        self._attachments = attachments

    async def on_get(self, request: GetAgent) -> Agent:
        """Return the newest version of an agent."""
        [agent] = await self._labelled(request.tenant, [await self._table.get(request.tenant, request.name)])
        return agent

    async def on_list(self, request: ListAgents) -> AgentList:
        """Return the newest version of each agent by name."""
        found = await self._table.list(request.tenant, after=request.after, limit=request.limit)
        return AgentList(agents=await self._labelled(request.tenant, found.agents))

    async def on_list_versions(self, request: ListAgentVersions) -> AgentHistory:
        """Return when an agent was saved, by whom, and what each version changed."""
        found = await self._table.history(request.tenant, request.name, before=request.before, limit=request.limit)
        labels = (await self._labels.of_agents(request.tenant, [request.name])).get(request.name, ())
        of_version = {one.version: _at(labels, one.version) for one in found.versions}
        return AgentHistory(
            versions=tuple(one.model_copy(update={"labels": of_version[one.version]}) for one in found.versions)
        )

    async def on_get_version(self, request: GetAgentVersion) -> SavedAgent:
        """Return one version of an agent."""
        saved = await self._table.version(request.tenant, request.name, request.number)
        labels = (await self._labels.of_agents(request.tenant, [request.name])).get(request.name, ())
        return saved.model_copy(update={"labels": _at(labels, saved.version)})

    async def on_put_label(self, request: PutAgentLabel) -> AgentLabel:
        """Give a version of an agent a label."""
        return await self._labels.put(request.tenant, request.name, request.label, request.config)

    async def on_delete_label(self, request: DeleteAgentLabel) -> LabelRemoved:
        """Take a label from an agent."""
        return LabelRemoved(deleted=await self._labels.delete(request.tenant, request.name, request.label))

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
        [saved] = await self._labelled(request.tenant, [saved])
        warnings = (*saved.warnings, system_warning(saved.config), _not_in_production(saved))
        return saved.model_copy(update={"warnings": tuple(filter(None, warnings))})

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

    async def _labelled(self, tenant: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
        """Return agents with the labels of their versions."""
        labels = await self._labels.of_agents(tenant, [agent.name for agent in agents])
        return tuple(agent.model_copy(update={"labels": labels.get(agent.name, ())}) for agent in agents)


def _using(agents: Sequence[Agent], tools: Sequence[str]) -> list[Agent]:
    return [
        agent
        for agent in agents
        if any(may_use(name, patterns=agent.config.tools, off=agent.config.tools_off) for name in tools)
    ]


def _at(labels: Sequence[AgentLabel], version: int) -> tuple[str, ...]:
    """Return the labels that a version has."""
    return tuple(one.label for one in labels if one.version == version)


def _not_in_production(saved: Agent) -> str | None:
    """Return the warning that new jobs do not take what was just saved."""
    there = next((one for one in saved.labels if one.label == DEFAULT_LABEL), None)
    if there is None or there.version == saved.version:
        return None
    return (
        f"jobs that ask for no label go on with version {there.version}, which has the label {DEFAULT_LABEL!r}: move "
        f"it to version {saved.version} when that is ready"
    )


def _version(agent: Agent) -> AgentVersion:
    return AgentVersion(name=agent.name, version=agent.version)
