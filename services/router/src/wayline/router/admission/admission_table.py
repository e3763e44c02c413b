"""The router's tables: tenants, agents by version, and one reservation a job."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import asyncpg

from wayline.chassis.concurrency.single_flight import SingleFlight
from wayline.contracts.agents import Agent, AgentConfig, AgentList
from wayline.contracts.errors import NotFound, Reject
from wayline.contracts.jobs import Turn
from wayline.contracts.tenant_settings import INHERITED
from wayline.contracts.tool_use import AgentVersion
from wayline.router.admission.conditions import AdmissionRequest, Admitted
from wayline.router.tenants.settings_in_force import inherited_by, inherited_by_default, read_settings, resolved
from wayline.store import Batcher, Record, Store, TenantInvalid

ADMISSIONS_APART_S = 0.01
"""Under load a job waits a few milliseconds longer here, and a statement and its commit serve several."""

TURNS_WAITING_MAX = 1_000
"""Jobs of one session that have not ended."""
AGENTS_A_PAGE = 100
KNOWN_MAX = 10_000
"""Tenants remembered at once."""


class Tables:
    """What the router keeps in Postgres."""

    def __init__(
        self,
        store: Store,
        *,
        tenants_fresh_s: float,
        job_budget_usd: Decimal,
        turns_waiting_max: int = TURNS_WAITING_MAX,
    ) -> None:
        self._store = store
        self._turns_waiting_max = turns_waiting_max
        self._fresh_s = tenants_fresh_s
        self._job_budget_usd = job_budget_usd
        self._known: dict[str, float] = {}
        self._asks = SingleFlight[str, bool | None]()
        self._admissions = Batcher(self._admit, apart_s=ADMISSIONS_APART_S)

    async def is_tenant(self, tenant: str) -> bool:
        """Return whether there is such a tenant, disabled or not."""
        return await self._is_enabled(tenant) is not None

    async def require_tenant(self, tenant: str) -> None:
        """Pass for a tenant whose jobs are accepted; a yes is believed for a few seconds. Raises Reject."""
        enabled = await self._is_enabled(tenant)
        if enabled is None:
            raise Reject(
                f"no tenant {tenant!r}: create it with `wayline tenants create {tenant}`",
                code="unknown_tenant",
                status=404,
            )
        if not enabled:
            raise Reject(
                f"tenant {tenant!r} is disabled: `wayline tenants enable {tenant}` accepts its jobs again",
                code="tenant_disabled",
                status=403,
            )

    async def _is_enabled(self, tenant: str) -> bool | None:
        """Return whether the tenant is enabled; None: there is no such tenant."""
        if self._known.get(tenant, 0) > time.monotonic():
            return True
        shared = self._asks.is_under_way(tenant)
        enabled = await self._asks.fetch(tenant, lambda: self._ask_if_enabled(tenant))
        # A no to an earlier question may be older than the tenant.
        return enabled if enabled or not shared else await self._ask_if_enabled(tenant)

    async def _ask_if_enabled(self, tenant: str) -> bool | None:
        try:
            enabled = await self._store.fetchval(tenant, self._store.sql.tenant_is_enabled, tenant)
        except TenantInvalid:
            # No tenant can be called so: as unknown as any other.
            return None
        if enabled:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[tenant] = time.monotonic() + self._fresh_s
        return enabled

    async def admit(self, tenant: str, request: AdmissionRequest) -> Admitted | None:
        """Read an agent's newest version and what the job may spend, begin its reservation and take its turn.

        It becomes its user's newest run, too. All in one statement. A reservation is begun once for a job id, and a
        turn taken once, however often it is asked for.
        None: there is no such agent.
        """
        return await self._admissions.ask(tenant, request)

    async def consider(self, tenant: str, request: AdmissionRequest) -> Admitted | None:
        """Read the same for a job that is only planned: nothing is begun."""
        [admitted] = await self._admit(tenant, [request], begin=False)
        return admitted

    async def _admit(
        self, tenant: str, requests: Sequence[AdmissionRequest], *, begin: bool = True
    ) -> list[Admitted | None]:
        columns = [
            (
                *(w.job_id, w.agent, w.user_id, w.budget_usd, w.session_id, w.when_busy),
                *(w.accepted or (None, None)),
                w.sequence,
            )
            for w in requests
        ]
        ids, names, users, usd, sessions, busy, *places = map(list, zip(*columns, strict=True))
        before = ids, names, users, usd, self._job_budget_usd
        after = sessions, busy, self._turns_waiting_max, *places, _earlier_than(requests)
        rows = await self._store.fetch(tenant, self._store.sql.admit, tenant, *before, None, begin, *after)
        agents = {row["name"]: _agent(row["name"], row) for row in rows if row["job_id"] is None}
        of_jobs = [row for row in rows if row["job_id"] is not None]
        # Only a job that was admitted to a session, or refused by it, has one of these.
        turns = {row["job_id"]: row for row in of_jobs if row["turn"] is not None or row["open_job"] is not None}
        bounds = {row["job_id"]: row for row in of_jobs if row is not turns.get(row["job_id"])}
        return [
            self._admitted(request, agents[request.agent], bounds.get(request.job_id), turns.get(request.job_id))
            if request.agent in agents
            else None
            for request in requests
        ]

    def _admitted(self, request: AdmissionRequest, agent: Agent, bound: Record | None, turn: Record | None) -> Admitted:
        # Each that is set holds: a job may ask for less than its agent and the budgets for each job leave, never more.
        several = (request.budget_usd, agent.config.max_cost_usd, bound["cap_usd"] if bound is not None else None)
        chosen = min((usd for usd in several if usd is not None), default=None)
        return Admitted(
            agent=agent,
            cap_usd=self._job_budget_usd if chosen is None else chosen,
            cap_set=chosen is not None,
            left_usd=bound["left_usd"] if bound is not None else None,
            tightest=(bound["tightest"] if bound is not None else None) or "",
            turn=Turn(number=turn["turn"], after=turn["turn_after"]) if turn and turn["turn"] is not None else None,
            open_job=turn["open_job"] if turn else None,
        )

    async def agent(self, tenant: str, name: str) -> Agent:
        """Return an agent's newest version. Raises NotFound."""
        row = await self._store.fetchrow(tenant, self._store.sql.get_agent, tenant, name)
        if row is None:
            raise NotFound("agent", name)
        return _agent(name, row)

    async def agents(self, tenant: str) -> AgentList:
        """Return the newest version of each agent."""
        rows = await self._store.fetch(tenant, self._store.sql.list_agents, tenant)
        return AgentList(agents=tuple(_agent(row["name"], row) for row in rows))

    async def pages_of_agents(self, tenant: str) -> AsyncIterator[list[Agent]]:
        """Yield the newest version of each agent by name, page by page."""
        after = ""
        while rows := await self._store.fetch(tenant, self._store.sql.page_of_agents, tenant, after, AGENTS_A_PAGE):
            yield [_agent(row["name"], row) for row in rows]
            after = rows[-1]["name"]

    async def agent_versions(self, tenant: str, wanted: Sequence[AgentVersion]) -> AsyncIterator[list[Agent]]:
        """Yield versions of agents that are still known, page by page."""
        for start in range(0, len(wanted), AGENTS_A_PAGE):
            page = wanted[start : start + AGENTS_A_PAGE]
            names, versions = [one.name for one in page], [one.version for one in page]
            rows = await self._store.fetch(tenant, self._store.sql.agent_versions, tenant, names, versions)
            yield [_agent(row["name"], row) for row in rows]

    async def put_agent(
        self, tenant: str, name: str, config: AgentConfig, *, inherits: Sequence[str] | None = None
    ) -> Agent:
        """Save a configuration as a new version, unless it is what the newest version says.

        `inherits`: what it leaves to the tenant's settings; None: the fields that nobody has set.
        """
        left = [*(inherited_by(config) if inherits is None else inherits)]
        before = [*inherited_by_default(config)]
        encoded = config.model_dump(mode="json")
        while True:
            try:
                sql = self._store.sql.put_agent
                row = await self._store.fetchrow(tenant, sql, tenant, name, encoded, left, before)
            except asyncpg.UniqueViolationError:
                # Another was saved at the same moment and has the number: this one comes after it.
                continue
            assert row is not None
            return _agent(name, row)

    async def delete_agent(self, tenant: str, name: str) -> bool:
        """Retire every version: kept for the jobs that began with one, refused to new ones."""
        status = await self._store.execute(tenant, self._store.sql.delete_agent, tenant, name)
        return not status.endswith(" 0")

    async def restore_agent(self, tenant: str, name: str, bundled: AgentConfig | None) -> Agent:
        """Save as the newest version what is bundled, or what was saved last. Raises NotFound."""
        if bundled is not None:
            return await self.put_agent(tenant, name, bundled, inherits=INHERITED)
        saved = await self._store.fetchrow(tenant, self._store.sql.last_saved_agent, tenant, name)
        if saved is None:
            raise NotFound("agent", name)
        config = _config(saved)
        return await self.put_agent(tenant, name, config, inherits=_inherits(saved, config))

    async def seed(self, agents: dict[str, AgentConfig]) -> None:
        """Give every tenant the bundled agents it does not have."""
        async with self._store.system() as conn:
            for name, config in agents.items():
                await conn.execute(self._store.sql.seed_agent, name, config.model_dump(mode="json"), [*INHERITED])


def _earlier_than(requests: Sequence[AdmissionRequest]) -> list[dict[str, Any]]:
    """Return the submissions that take their turns before those that are admitted, each once."""
    admitted = {request.job_id for request in requests}
    earlier = {turn.job_id: turn for request in requests for turn in request.earlier if turn.job_id not in admitted}
    return [asdict(turn) for turn in earlier.values()]


def _agent(name: str, row: Record) -> Agent:
    """Return an agent as its next job records it: with the tenant's settings for what it leaves to them."""
    config = _config(row)
    inherits = _inherits(row, config)
    effective = resolved(config, inherits, read_settings(row["settings"]))
    return Agent(name=name, version=row["version"], config=effective, inherits=tuple(inherits))


def _config(row: Record) -> AgentConfig:
    return AgentConfig.model_validate(row["config"], extra="ignore")


def _inherits(row: Record, config: AgentConfig) -> Sequence[str]:
    return inherited_by_default(config) if row["inherits"] is None else row["inherits"]
