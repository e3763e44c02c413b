"""Settles ended jobs, and wakes those that waited for them."""

from __future__ import annotations

from datetime import UTC, datetime

from wayline.chassis import Bus, Failpoint, reach
from wayline.contracts import ids
from wayline.contracts.budgets import Settled, SettleJob
from wayline.router.jobs.families import Families
from wayline.router.jobs.result_table import ResultTable
from wayline.router.money.budget_table import BudgetTable
from wayline.router.permits.places import RunPlaces
from wayline.router.routes.agent_averages import AgentUsage
from wayline.router.routes.session_caches import SessionCaches
from wayline.router.sessions.extractions import Extractions
from wayline.router.sessions.turns import Turns
from wayline.router.ticket_lanes import TicketLanes


class SettlementHandlers:
    """Answers executors whose job has ended."""

    def __init__(
        self,
        bus: Bus,
        budgets: BudgetTable,
        *,
        usage: AgentUsage,
        session_caches: SessionCaches,
        turns: Turns,
        families: Families,
        ticket_lanes: TicketLanes,
        latest: ResultTable,
        extractions: Extractions,
        places: RunPlaces,
    ) -> None:
        self._places = places
        self._bus = bus
        self._budgets = budgets
        self._usage = usage
        self._session_caches = session_caches
        self._turns = turns
        self._families = families
        self._ticket_lanes = ticket_lanes
        self._latest = latest
        self._extractions = extractions

    async def on_settle(self, request: SettleJob) -> Settled:
        """Turn a job's reservation into its cost; remember what it used and left warm, and wake its session's next."""
        settled = await self._budgets.settle(request.tenant, request.job_id, request.cost_usd, request.unsettled_usd)
        if settled:
            self._ticket_lanes.note_end(request.tenant)
        await self._places.end(request.tenant, request.job_id)
        # Also where it was settled before: the process that settled it may have died before it wrote this.
        await self._latest.end(request.tenant, request.result)
        if request.used is not None and settled:
            self._usage.note(request.tenant, request.used)
        if request.left_warm is not None:
            await self._session_caches.remember(request.tenant, request.left_warm, now=datetime.now(UTC))
        if request.remember_for is not None:
            await self._turns.remember_for(request.tenant, request.job_id, request.remember_for)
        if request.summarize_for is not None and request.agent is not None:
            await self._extractions.want_summary(request.tenant, request.job_id, request.summarize_for, request.agent)
        if request.has_session:
            # Also where it was settled before: the process that settled it may have died before it woke a job.
            await self._turns.end(request.tenant, request.job_id)
        if ids.is_child(request.job_id):
            await self._wake_parent(request.tenant, request.job_id)
        return Settled(settled=settled)

    async def _wake_parent(self, tenant: str, job_id: str) -> None:
        """Queue the job that waits for a child whose end is in its log; also where it was settled before."""
        ticket = await self._families.wake_ticket(tenant, job_id)
        if ticket is None:
            return
        reach(Failpoint.ROUTER_PARENT_BEFORE)
        await self._bus.publish(await self._ticket_lanes.queue(ticket), msg_id=ticket.msg_id)
        reach(Failpoint.ROUTER_PARENT_AFTER)
