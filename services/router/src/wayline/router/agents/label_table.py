"""Labels of agents' versions in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from wayline.contracts.agent_labels import DEFAULT_LABEL, LABELS_MAX, AgentLabel, LabelConfig
from wayline.contracts.errors import NotFound, Reject
from wayline.store import Store

ROUNDING = 1e-9
"""Of a sum of shares."""


class LabelTable:
    """One row a label of an agent."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of_agents(self, tenant: str, names: Sequence[str]) -> dict[str, tuple[AgentLabel, ...]]:
        """Return the labels of agents by agent, each in the order of its name."""
        found: dict[str, tuple[AgentLabel, ...]] = {}
        for row in await self._store.fetch(tenant, self._store.sql.labels_of_agents, tenant, [*names]):
            label = AgentLabel(label=row["label"], version=row["version"], share=row["share"])
            found[row["agent"]] = (*found.get(row["agent"], ()), label)
        return found

    async def put(self, tenant: str, agent: str, label: str, config: LabelConfig) -> AgentLabel:
        """Give a version a label. Raises NotFound, and Reject for shares that are more than all jobs."""
        sql = self._store.sql
        async with self._store.tenant(tenant) as conn:
            if await conn.fetchval(sql.lock_version, tenant, agent, config.version) is None:
                raise NotFound("version of an agent", f"{agent}/{config.version}")
            rows = await conn.fetch(sql.labels_of_agents, tenant, [agent])
            _require_room(label, config, {row["label"]: row["share"] for row in rows if row["label"] != label})
            await conn.execute(sql.put_agent_label, tenant, agent, label, config.version, config.share)
        return AgentLabel(label=label, **dict(config))

    async def delete(self, tenant: str, agent: str, label: str) -> bool:
        """Take a label away; return whether there was one."""
        status = await self._store.execute(tenant, self._store.sql.delete_agent_label, tenant, agent, label)
        return not status.endswith(" 0")


def _require_room(label: str, config: LabelConfig, others: dict[str, float | None]) -> None:
    """Refuse a label, with Reject, that leaves no clear answer to where a job goes."""
    if label == DEFAULT_LABEL and config.share is not None:
        reason = f"{DEFAULT_LABEL!r} takes the jobs that are in no share: give the other labels shares"
        raise Reject(reason, code="invalid_share", status=422)
    if len(others) >= LABELS_MAX:
        raise Reject(f"an agent has {LABELS_MAX} labels at most: take one away first", code="too_many", status=422)
    taken = sum(share or 0 for share in others.values())
    if taken + (config.share or 0) > 1 + ROUNDING:
        reason = f"the shares of its other labels are {taken:g}: {config.share:g} is more than is left"
        raise Reject(reason, code="invalid_share", status=422)
