"""Shows the route of a job that is not submitted."""

from __future__ import annotations

from wayline.contracts.jobs import PlanJob, Planned
from wayline.router.admission.admission_table import AdmissionTable
from wayline.router.admission.conditions import (
    AdmissionRequest,
    too_long,
    unaffordable,
    unknown_agent,
    unusable_client_tools,
    unusable_schema,
)
from wayline.router.routes.routes import Routes


class RouteHandlers:
    """Answers requests for plans."""

    def __init__(self, admissions: AdmissionTable, routes: Routes) -> None:
        self._admissions = admissions
        self._routes = routes

    async def on_plan(self, request: PlanJob) -> Planned:
        """Decide as for a real job, and run nothing."""
        job = request.job
        admitted = await self._admissions.consider(request.tenant, AdmissionRequest.of(job, job.job_id or ""))
        if admitted is None:
            raise unknown_agent(job.agent)
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
