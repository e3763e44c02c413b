"""Agents in Postgres: every version that was saved, the newest of which new jobs take."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import asyncpg

from wayline.contracts.agents import Agent, AgentConfig, AgentHistory, AgentList, SavedAgent, SavedVersion
from wayline.contracts.errors import NotFound
from wayline.contracts.tenant_settings import own_tools_off
from wayline.contracts.tool_use import AgentVersion
from wayline.router.tenants.settings_in_force import (
    inherited_by,
    inherited_by_default,
    inherited_when_bundled,
    read_settings,
    resolved,
)
from wayline.store import Record, Store

AGENTS_A_PAGE = 100


class AgentTable:
    """One row a version of an agent."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, tenant: str, name: str) -> Agent:
        """Return an agent's newest version. Raises NotFound."""
        row = await self._store.fetchrow(tenant, self._store.sql.get_agent, tenant, name)
        if row is None:
            raise NotFound("agent", name)
        return read_agent(name, row)

    async def list(self, tenant: str, *, after: str = "", limit: int | None = None) -> AgentList:
        """Return the newest version of each agent by name, of those behind a name; None: all of these."""
        rows = await self._store.fetch(tenant, self._store.sql.page_of_agents, tenant, after, limit)
        return AgentList(agents=tuple(read_agent(row["name"], row) for row in rows))

    async def pages(self, tenant: str) -> AsyncIterator[list[Agent]]:
        """Yield the newest version of each agent by name, page by page."""
        after = ""
        while rows := await self._store.fetch(tenant, self._store.sql.page_of_agents, tenant, after, AGENTS_A_PAGE):
            yield [read_agent(row["name"], row) for row in rows]
            after = rows[-1]["name"]

    async def versions(self, tenant: str, wanted: Sequence[AgentVersion]) -> AsyncIterator[list[Agent]]:
        """Yield versions of agents that are still known, page by page."""
        for start in range(0, len(wanted), AGENTS_A_PAGE):
            page = wanted[start : start + AGENTS_A_PAGE]
            names, versions = [one.name for one in page], [one.version for one in page]
            rows = await self._store.fetch(tenant, self._store.sql.agent_versions, tenant, names, versions)
            yield [read_agent(row["name"], row) for row in rows]

    async def history(self, tenant: str, name: str, *, before: int | None, limit: int) -> AgentHistory:
        """Return the versions of an agent below one, newest first, also of one that was deleted. Raises NotFound."""
        sql = self._store.sql.versions_of_agent
        rows = await self._store.fetch(tenant, sql, tenant, name, before, limit)
        if not rows and before is None:
            raise NotFound("agent", name)
        return AgentHistory(versions=tuple(SavedVersion(**_saved(row)) for row in rows))

    async def version(self, tenant: str, name: str, number: int) -> SavedAgent:
        """Return one version of an agent. Raises NotFound."""
        row = await self._store.fetchrow(tenant, self._store.sql.version_of_agent, tenant, name, number)
        if row is None:
            raise NotFound("version of an agent", f"{name}/{number}")
        agent = read_agent(name, row)
        return SavedAgent(name=name, config=agent.config, inherits=agent.inherits, **_saved(row))

    async def put(
        self, tenant: str, name: str, config: AgentConfig, *, inherits: Sequence[str] | None = None, by: str = ""
    ) -> Agent:
        """Save a configuration as a new version, unless it is what the newest version says.

        `inherits`: what it leaves to the tenant's settings; None: the fields that nobody has set.
        """
        left = [*(inherited_by(config) if inherits is None else inherits)]
        before = [*inherited_by_default(config)]
        encoded = _without_added(config).model_dump(mode="json")
        while True:
            try:
                sql = self._store.sql.put_agent
                row = await self._store.fetchrow(tenant, sql, tenant, name, encoded, left, before, by)
            except asyncpg.UniqueViolationError:
                # Another was saved at the same moment and has the number: this one comes after it.
                continue
            assert row is not None
            return read_agent(name, row)

    async def draft(self, tenant: str, name: str, config: AgentConfig) -> Agent:
        """Return an agent as it would be if it were saved now; nothing is."""
        row = await self._store.fetchrow(tenant, self._store.sql.get_settings, tenant)
        inherits = inherited_by(config)
        own = read_settings(row["settings"] if row else None)
        effective = resolved(_without_added(config), inherits, own)
        return Agent(name=name, version=1, config=effective, inherits=inherits, default_model=own.default_model)

    async def delete(self, tenant: str, name: str) -> bool:
        """Retire every version: kept for the jobs that began with one, refused to new ones."""
        status = await self._store.execute(tenant, self._store.sql.delete_agent, tenant, name)
        return not status.endswith(" 0")

    async def restore(self, tenant: str, name: str, bundled: AgentConfig | None, *, by: str = "") -> Agent:
        """Save as the newest version what is bundled, or what was saved last. Raises NotFound."""
        if bundled is not None:
            return await self.put(tenant, name, bundled, inherits=inherited_when_bundled(bundled), by=by)
        saved = await self._store.fetchrow(tenant, self._store.sql.last_saved_agent, tenant, name)
        if saved is None:
            raise NotFound("agent", name)
        config = _config(saved)
        return await self.put(tenant, name, config, inherits=_inherits(saved, config), by=by)

    async def seed(self, agents: dict[str, AgentConfig]) -> None:
        """Give every tenant the bundled agents it does not have."""
        async with self._store.system() as conn:
            for name, config in agents.items():
                await conn.execute(
                    self._store.sql.seed_agent, name, config.model_dump(mode="json"), [*inherited_when_bundled(config)]
                )


def _without_added(config: AgentConfig) -> AgentConfig:
    """Return a configuration without what switches added to it when it was read."""
    off = own_tools_off(config.tools_off)
    return config if off == config.tools_off else config.model_copy(update={"tools_off": off})


def read_agent(name: str, row: Record) -> Agent:
    """Return an agent as its next job records it: with the tenant's settings for what it leaves to them."""
    config = _config(row)
    inherits = _inherits(row, config)
    own = read_settings(row["settings"])
    effective = resolved(config, inherits, own)
    return Agent(
        name=name,
        version=row["version"],
        config=effective,
        inherits=tuple(inherits),
        default_model=own.default_model,
    )


def _saved(row: Record) -> dict[str, Any]:
    """Return when a version was saved, by whom, and what it changed."""
    config, before = row["config"], row["config_before"]
    changed = () if before is None else (name for name in config.keys() | before if _differs(name, config, before))
    return {
        "version": row["version"],
        "saved_at": row["created_at"],
        "saved_by": row["saved_by"],
        "retired_at": row["retired_at"],
        "changed": tuple(sorted(changed)),
    }


def _differs(name: str, config: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Return whether two versions have other values of a field; of a schema the order of its keys counts."""
    one, other = config.get(name), before.get(name)
    return json.dumps(one) != json.dumps(other) if name == "output_schema" else one != other


def _config(row: Record) -> AgentConfig:
    return AgentConfig.model_validate(row["config"], extra="ignore")


def _inherits(row: Record, config: AgentConfig) -> Sequence[str]:
    return inherited_by_default(config) if row["inherits"] is None else row["inherits"]
