"""Decides which model a job runs on, from what it asks and what the tables know."""

from __future__ import annotations

from datetime import UTC, datetime

from wayline.contracts.chat import Attachment
from wayline.contracts.jobs import SubmitJob
from wayline.router.admission.conditions import Admitted, within_agent
from wayline.router.models.attachments import Attachments
from wayline.router.models.availability import Availability
from wayline.router.models.tenant_models import Catalogue
from wayline.router.routes.agent_averages import AgentUsage
from wayline.router.routes.session_caches import SessionCaches
from wayline.routing import Decision, RoutingInput, choose_route
from wayline.routing.slots import named_by


class Routes:
    """Gathers what a route depends on, and has it chosen."""

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        attachments: Attachments,
        session_caches: SessionCaches,
        availability: Availability,
        usage: AgentUsage,
        default_model: str,
    ) -> None:
        self._catalogue = catalogue
        self._attachments = attachments
        self._session_caches = session_caches
        self._availability = availability
        self._usage = usage
        self._default_model = default_model

    async def inputs(
        self, tenant: str, job: SubmitJob, admitted: Admitted, *, files: tuple[Attachment, ...] | None = None
    ) -> RoutingInput:
        """Gather what a job asks of its route: its files, its session's cache and its agent's use included.

        The job's own options are kept within what its agent allows. `files`: those that are known already.
        """
        agent, warm = admitted.agent, None
        job, config = within_agent(job, agent)
        known = await self._usage.agent_averages(tenant, agent.name, now=datetime.now(UTC))
        if files is None:
            named = (*agent.config.pinned, *job.told_parts())
            files = await self._attachments.of(tenant, named, user_id=job.user_id)
        if job.session_id is not None:
            warm = await self._session_caches.warm(tenant, job.session_id, agent, now=datetime.now(UTC))
        return RoutingInput(
            job,
            config,
            left_usd=admitted.bound_usd,
            cap_usd=admitted.cap_usd,
            warm=warm,
            attachments=files,
            observed=known.observed,
            tools=known.tools,
            default_model=agent.default_model,
        )

    async def decide(self, tenant: str, inputs: RoutingInput) -> Decision:
        """Return the model for a job among those that its tenant can use and that are not left alone."""
        cards = await self._catalogue.usable(tenant)
        away = self._availability.away({*(card.name for card in cards), *named_by(inputs.config.routing)})
        return choose_route(inputs, default_model=self._default_model, cards=cards, away=away)
