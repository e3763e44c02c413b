"""Questions to the router about tenants and new jobs, with answers cached for a few seconds."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Any

from wayline.chassis import Bus
from wayline.contracts.agents import Agent, GetAgent
from wayline.contracts.chat import TextPart
from wayline.contracts.errors import NotFound, Refused, Reject, Retry, TenantFull
from wayline.contracts.jobs import PlanJob, Planned, SubmitJob
from wayline.contracts.run_controls import CheckPlace, Permit
from wayline.contracts.sessions import GetSession, SessionTurns
from wayline.contracts.tenants import GetTenant, Tenant
from wayline.gateway.errors import SessionBusy, TenantDisabled, TooManyRunning, UnknownTenant

FRESH_S = 5.0
"""How long a good answer is believed without asking again."""
AWAY_S = 2.0
"""How long the router is not asked again after it did not answer."""
ASK_TIMEOUT_S = 1.0
REMEMBERED_MAX = 10_000


class RouterAnswers:
    """Refuses early what the router would refuse later.

    While the router is away nothing is refused: what is submitted then waits for it on the bus.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._good: dict[Hashable, float] = {}
        self._tenants: dict[str, Tenant | None] = {}
        self._away_until = 0.0

    async def require_tenant(self, tenant: str) -> None:
        """Pass for a tenant that may be served. Raises UnknownTenant or TenantDisabled."""
        if tenant not in self._tenants or not self._is_fresh(tenant):
            await self._look_at(tenant)
        if tenant not in self._tenants:
            return
        known = self._tenants[tenant]
        if known is None:
            raise UnknownTenant(tenant=tenant)
        if known.disabled_at is not None:
            raise TenantDisabled(tenant=tenant, reason=known.disabled_reason)

    async def require_room(self, tenant: str) -> None:
        """Pass for a tenant that may begin jobs. Raises TenantFull."""
        if tenant not in self._tenants or not self._is_fresh(tenant):
            await self._look_at(tenant)
        known = self._tenants.get(tenant)
        if known is not None and known.full is not None:
            # The next request asks again: what makes room is over from one moment to the next.
            self._good.pop(tenant, None)
            raise TenantFull(known.full)

    async def _look_at(self, tenant: str) -> None:
        found: Tenant | None = None
        try:
            found = await self._ask(GetTenant(tenant=tenant), Tenant)
        except Refused as error:
            if error.status != NotFound.status:
                raise
        except Retry:
            return
        self._remember(tenant)
        self._tenants[tenant] = found

    def forget_tenant(self, tenant: str) -> None:
        """Ask anew: this process has just changed it."""
        self._good.pop(tenant, None)

    def forget_agent(self, tenant: str, name: str) -> None:
        """Ask anew whether its jobs run: this process has just removed it."""
        for known in [known for known in self._good if isinstance(known, tuple) and known[:2] == (tenant, name)]:
            del self._good[known]

    async def require_runnable(self, job: SubmitJob) -> None:
        """Pass for a job that the router would not refuse for its agent, its model or its files. Raises Refused."""
        _require_usable_schema(job)
        _require_usable_tools(job)
        names_files = any(not isinstance(part, TextPart) for part in job.told_parts())
        named = job.options.model is not None or job.options.agent_label is not None
        combination = (job.tenant, job.agent, job.options.model, job.options.agent_label)
        if not names_files and self._is_fresh(combination):
            return
        try:
            if names_files or named:
                # The answer may depend on other services, so a timeout does not mean that the router is away.
                await self._bus.ask(PlanJob(tenant=job.tenant, job=job), Planned, timeout_s=ASK_TIMEOUT_S)
            else:
                await self._ask(GetAgent(tenant=job.tenant, name=job.agent), Agent)
        except Retry:
            return
        except Reject as error:
            if error.code != NotFound.code:
                raise
            # An older router answers this for an unknown agent.
            raise Reject(str(error), code="unknown_agent", status=NotFound.status) from None
        self._remember(combination)

    async def require_idle_session(self, job: SubmitJob) -> None:
        """Pass for a job that is not refused by a busy session. Raises SessionBusy."""
        if job.session_id is None or job.options.when_busy != "refuse":
            return
        try:
            found = await self._ask(GetSession(tenant=job.tenant, session_id=job.session_id, limit=0), SessionTurns)
        except Refused as error:
            if error.status != NotFound.status:
                raise
        except Retry:
            return
        else:
            if found.busy_with is not None:
                raise SessionBusy(session_id=job.session_id, job_id=found.busy_with)

    async def require_place(self, job: SubmitJob, *, key_id: str | None) -> None:
        """Pass for a job that no limit of running jobs refuses. Raises TooManyRunning."""
        asking = (job.tenant, "limits that refuse")
        if self._is_fresh(asking):
            return
        try:
            asked = CheckPlace(tenant=job.tenant, agent=job.agent, user_id=job.user_id, key_id=key_id)
            permit = await self._ask(asked, Permit)
        except Retry:
            # The router is away, or of the version before: it refuses by itself, or nothing is limited.
            return
        if not permit.refuses:
            self._remember(asking)
        if not permit.granted:
            raise TooManyRunning(permit.words)

    async def _ask(self, request: Any, replies: Any) -> Any:
        if time.monotonic() < self._away_until:
            raise Retry("the router did not answer a moment ago")
        try:
            return await self._bus.ask(request, replies, timeout_s=ASK_TIMEOUT_S)
        except Retry:
            self._away_until = time.monotonic() + AWAY_S
            raise

    def _is_fresh(self, thing: Hashable) -> bool:
        return time.monotonic() < self._good.get(thing, 0.0)

    def _remember(self, thing: Hashable) -> None:
        if len(self._good) >= REMEMBERED_MAX:
            self._good.clear()
            self._tenants.clear()
        self._good[thing] = time.monotonic() + FRESH_S


def _require_usable_schema(job: SubmitJob) -> None:
    """Pass for a job whose answer can be checked by its own schema. Raises Reject."""
    if job.options.output_schema is None:
        return
    from wayline.llm.structured import schema_problem

    problem = schema_problem(job.options.output_schema)
    if problem:
        raise Reject(f"options.output_schema is no JSON Schema: {problem}", code="invalid_output_schema", status=422)


def _require_usable_tools(job: SubmitJob) -> None:
    """Pass for a job whose caller's own tools a model can be told of. Raises Reject."""
    if not job.options.client_tools:
        return
    from wayline.llm.structured import arguments_schema_problem

    for tool in job.options.client_tools:
        problem = arguments_schema_problem(tool.input_schema)
        if problem:
            raise Reject(f"input_schema of {tool.name!r}: {problem}", code="client_tools_refused", status=422)
