"""Keeps the agents that tenants save."""

from __future__ import annotations

from wayline.contracts.agents import (
    Agent,
    AgentList,
    DeleteAgent,
    Deleted,
    GetAgent,
    ListAgents,
    PutAgent,
    RestoreAgent,
)
from wayline.contracts.errors import NotFound
from wayline.router.adapters.attachments import Attachments, fixed
from wayline.router.adapters.catalogue import Catalogue
from wayline.router.adapters.tables import Tables
from wayline.router.agents import check_agent
from wayline.router.bundled import bundled


class AgentHandlers:
    """Answers requests for agents."""

    def __init__(self, tables: Tables, catalogue: Catalogue, attachments: Attachments) -> None:
        self._tables = tables
        self._catalogue = catalogue
        self._attachments = attachments

    async def on_get(self, request: GetAgent) -> Agent:
        """Give the newest version of an agent."""
        return await self._tables.agent(request.tenant, request.name)

    async def on_list(self, request: ListAgents) -> AgentList:
        """Give the newest version of every agent."""
        return await self._tables.agents(request.tenant)

    async def on_put(self, request: PutAgent) -> Agent:
        """Save an agent that can do its work; what is pinned to it keeps the bytes of now."""
        if not await self._tables.is_tenant(request.tenant):
            raise NotFound("tenant", request.tenant)
        config = request.config
        check_agent(config, (await self._catalogue.all(request.tenant)).models)
        if config.pinned:
            pinned = fixed(config.pinned, await self._attachments.of(request.tenant, config.pinned))
            config = config.model_copy(update={"pinned": pinned})
        return await self._tables.put_agent(request.tenant, request.name, config)

    async def on_delete(self, request: DeleteAgent) -> Deleted:
        """Retire an agent."""
        return Deleted(deleted=await self._tables.delete_agent(request.tenant, request.name))

    async def on_restore(self, request: RestoreAgent) -> Agent:
        """Bring an agent back that was removed or changed."""
        if not await self._tables.is_tenant(request.tenant):
            raise NotFound("tenant", request.tenant)
        return await self._tables.restore_agent(request.tenant, request.name, bundled().get(request.name))
