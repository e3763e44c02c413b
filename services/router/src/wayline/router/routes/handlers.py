"""Shows the route of a job that is not submitted, and what an agent would be that is not saved."""

from __future__ import annotations

from wayline.contracts.agents import Agent
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import AgentCheck, CheckAgent, Failure, PlanJob, Planned, SubmitJob
from wayline.llm.tokens import estimate
from wayline.router.admission.admission_table import AdmissionTable
from wayline.router.admission.conditions import (
    AdmissionRequest,
    Admitted,
    too_long,
    unaffordable,
    unusable_client_tools,
    unusable_schema,
)
from wayline.router.agents.agent_table import AgentTable
from wayline.router.agents.check_agent import check_agent
from wayline.router.models.tenant_models import Catalogue
from wayline.router.routes.routes import Routes
from wayline.routing.context_budget import system_warning
from wayline.routing.styles import system_prompt

EXAMPLE = "What can you do for me?"
"""The input of the job whose route and cost a check shows."""


class RouteHandlers:
    """Answers requests for plans."""

    def __init__(self, admissions: AdmissionTable, routes: Routes, *, agents: AgentTable, catalogue: Catalogue) -> None:
        self._admissions = admissions
        self._routes = routes
        self._agents = agents
        self._catalogue = catalogue

    async def on_check(self, request: CheckAgent) -> AgentCheck:
        """Look at an agent as if it were saved, and route a short job of it; nothing is saved and nothing runs."""
        draft = await self._agents.draft(request.tenant, request.name, request.config)
        warning = system_warning(draft.config)
        check = AgentCheck(
            instructions_tokens=estimate(system_prompt(draft.config)), warnings=(warning,) if warning else ()
        )
        try:
            check_agent(request.config, (await self._catalogue.all_now(request.tenant)).models)
            return await self._routed(check, request.tenant, draft)
        except Reject as error:
            return check.model_copy(update={"problems": (Failure(code=error.code, message=str(error)),)})

    async def _routed(self, check: AgentCheck, tenant: str, draft: Agent) -> AgentCheck:
        """Add the route of a short job. Raises Reject for what none of its jobs could be."""
        job = SubmitJob(tenant=tenant, agent=draft.name, input=EXAMPLE)
        own = draft.config.max_cost_usd
        cap = self._admissions.job_budget_usd if own is None else own
        admitted = Admitted(agent=draft, cap_usd=cap, cap_set=own is not None)
        inputs = await self._routes.inputs(tenant, job, admitted)
        decision = await self._routes.decide(tenant, inputs)
        refusal = unaffordable(job, decision, admitted)
        return check.model_copy(
            update={
                "problems": (refusal,) if refusal else (),
                "slots": decision.candidates.slots,
                "route": decision.route,
                "tools_tokens_seen": inputs.tools.tokens if inputs.tools else None,
            }
        )

    async def on_plan(self, request: PlanJob) -> Planned:
        """Decide as for a real job, and run nothing."""
        job = request.job
        admitted = await self._admissions.consider(request.tenant, AdmissionRequest.of(job, job.job_id or ""))
        if isinstance(admitted, Reject):
            raise admitted
        inputs = await self._routes.inputs(request.tenant, job, admitted)
        decision = await self._routes.decide(request.tenant, inputs)
        agent = admitted.agent
        refusal = (
            unusable_schema(job)
            or unusable_client_tools(job, agent.config)
            or too_long(inputs)
            or unaffordable(job, decision, admitted)
        )
        return Planned(agent=agent.name, agent_version=agent.version, route=decision.route, refusal=refusal)
