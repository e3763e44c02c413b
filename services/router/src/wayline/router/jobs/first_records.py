"""Writes the first record of a job, and what follows where that is its last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

from wayline.chassis import Bus, Delivery, Failpoint, reach
from wayline.contracts.errors import NotFound, Reject, Retry
from wayline.contracts.events import Event, JobSubmitted
from wayline.contracts.jobs import SECONDS_MAX, StartChild, SubmitJob
from wayline.journal import Branch, Fenced, Head, JobLog, State, branch, fold, run_result, send_result
from wayline.router.admission import conditions as admission
from wayline.router.admission import first_events, forks
from wayline.router.admission.admission_table import AdmissionTable
from wayline.router.admission.conditions import AdmissionRequest, Admitted
from wayline.router.jobs.families import Families
from wayline.router.jobs.log_capacity import LogCapacity
from wayline.router.jobs.result_table import ResultTable
from wayline.router.money.budget_table import BudgetTable
from wayline.router.permits.places import RunPlaces
from wayline.router.routes.routes import Routes
from wayline.router.schedules.firings import Firings
from wayline.router.sessions.accepted_order import AcceptedOrder
from wayline.router.sessions.turns import Turns
from wayline.router.tenants.shares import Shares


class FirstRecords:
    """Reserves what a job needs, decides its route, and begins its log."""

    def __init__(
        self,
        bus: Bus,
        admissions: AdmissionTable,
        budgets: BudgetTable,
        *,
        routes: Routes,
        shares: Shares,
        turns: Turns,
        families: Families,
        firings: Firings,
        latest: ResultTable,
        accepted_order: AcceptedOrder,
        places: RunPlaces,
    ) -> None:
        self._places = places
        self._accepted_order = accepted_order
        self._bus = bus
        self._log_capacity = LogCapacity(bus)
        self._admissions = admissions
        self._budgets = budgets
        self._routes = routes
        self._shares = shares
        self._turns = turns
        self._families = families
        self._firings = firings
        self._latest = latest

    async def begin(self, log: JobLog, job: SubmitJob, job_id: str, delivery: Delivery, *, content_hash: str) -> Head:
        """Write a job's first record; only what is new can be refused or has to wait."""
        try:
            await self._log_capacity.require()
            await self._shares.require(job.tenant)
            return await self._reserve(log, job, job_id, delivery, content_hash)
        except (Reject, Retry):
            head = await log.last()
            if head is None:
                raise
            return head

    async def begin_child(self, log: JobLog, first: JobSubmitted, request: StartChild) -> Head:
        """Write the first record of a job that another one starts. Raises Reject, and Retry."""
        try:
            await self._log_capacity.require()
            await self._shares.require(request.tenant)
            admitted = await self._admissions.admit(request.tenant, AdmissionRequest.of(first.job, first.job_id))
            if isinstance(admitted, Reject):
                raise admitted
            parent_id = request.parent.job_id
            admitted = await self._families.adopt(request.tenant, first.job_id, admitted, parent_id=parent_id)
            record = await self._first_record(first, admitted, None, seconds_max=request.max_seconds)
        except (Reject, Retry):
            head = await log.last()
            if head is None:
                raise
            return head
        return await self._append_first(log, first, record)

    async def _reserve(self, log: JobLog, job: SubmitJob, job_id: str, delivery: Delivery, content_hash: str) -> Head:
        reach(Failpoint.ROUTER_RESERVE_BEFORE)
        earlier = await self._accepted_order.before(job, delivery)
        request = AdmissionRequest.of(job, job_id, delivery, earlier=earlier)
        if request.session_id is not None and any(one.when_busy == "refuse" for one in (request, *earlier)):
            # An end that has not been noticed yet must not count as busy.
            await self._turns.first_open(job.tenant, request.session_id)
        branched = await self._branch(job)
        admitted = await self._admissions.admit(job.tenant, request)
        self._accepted_order.taken(job.tenant, (*(turn.sequence for turn in earlier), delivery.sequence))
        reach(Failpoint.ROUTER_RESERVE_AFTER)
        if isinstance(admitted, Reject):
            raise admitted
        schedule = await self._firings.fired_by(job.tenant, job_id, delivery)
        about = {"turn": admitted.turn, "schedule": schedule, "content_hash": content_hash}
        first = first_events.submitted(job, job_id, delivery, datetime.now(UTC), **about)
        return await self._append_first(log, first, await self._first_record(first, admitted, branched))

    async def _append_first(self, log: JobLog, first: JobSubmitted, record: list[Event]) -> Head:
        """Append a first record, or return the last one of a log that another process has begun."""
        try:
            reach(Failpoint.ROUTER_RECORD_BEFORE)
            head = await log.begin(record, content_hash=first.content_hash, lane=first.job.options.lane)
            reach(Failpoint.ROUTER_RECORD_AFTER)
            return head
        except Fenced:
            # Another process was faster: its record stands, and we answer from it.
            head = await log.last()
            assert head is not None
            if head.state is State.ENDED and head.epoch == 0:
                # No executor will settle what we have just reserved beside it.
                has_session = AdmissionRequest.of(first.job, first.job_id).session_id is not None
                await self._settle_unheld(log.tenant, log.job_id, has_session=has_session)
            return head

    async def _first_record(
        self, first: JobSubmitted, admitted: Admitted, branched: Branch | None, *, seconds_max: float = SECONDS_MAX
    ) -> list[Event]:
        """Decide the job's route, and return its first record: that it runs, waits for its turn, or is refused."""
        job, today, files = first.job, admitted.agent.config, None
        if branched is not None and job.fork is not None:
            admitted = forks.as_pinned(admitted, branched, job.fork)
            files = branched.routed.attachments if branched.routed else None
        inputs = await self._routes.inputs(job.tenant, job, admitted, files=files)
        decision = await self._routes.decide(job.tenant, inputs)
        agents = await self._families.startable(job.tenant, admitted.agent.config.agents)
        decided = first_events.routed(first, admitted, inputs, decision, agents=agents, seconds_max=seconds_max)
        refusal = (
            admission.turnless(job, admitted)
            or admission.unusable_schema(job)
            or admission.unusable_client_tools(job, admitted.agent.config)
            or admission.too_long(inputs)
            or admission.unaffordable(job, decision, admitted)
        )
        if job.options.dry_run:
            return first_events.planned(first, decided, refusal)
        if refusal:
            return first_events.refused(first, refusal)
        if branched is not None:
            refusal = await self._places.refusal(first)
            if refusal:
                return first_events.refused(first, refusal)
            return first_events.with_what_it_needs(forks.forked(first, decided, branched, today))
        before = await self._open_before(job, admitted)
        if before is not None:
            return first_events.with_what_it_needs(first_events.parked_for_turn(first, decided, before))
        refusal = await self._places.refusal(first)
        if refusal:
            return first_events.refused(first, refusal)
        return first_events.with_what_it_needs([first, decided])

    async def _branch(self, job: SubmitJob) -> Branch | None:
        """Read what a fork shares with its origin; None: it is none. Raises Reject."""
        if job.fork is None:
            return None
        forks.require_forkable(job)
        origin = JobLog(self._bus, job.tenant, job.fork.job_id)
        head = await origin.last()
        if head is None:
            raise NotFound("job", job.fork.job_id)
        found = branch([value async for value in origin.values(head.sequence)], job.fork, job.parts())
        forks.require_agent(job, found)
        return found

    async def _open_before(self, job: SubmitJob, admitted: Admitted) -> str | None:
        """Return the first job of the session that has not ended, of those before this one; else nothing is read."""
        if job.session_id is None or admitted.turn is None or admitted.open_job is None:
            return None
        first = await self._turns.first_open(job.tenant, job.session_id, before=admitted.turn.number)
        return first.job_id if first else None

    async def conclude_refused(self, log: JobLog, first: JobSubmitted, record: Sequence[Event]) -> None:
        """Do what follows the end of a job for which nothing was reserved; each part may be repeated."""
        await self._admissions.name_refused(first)
        await self.conclude(log, record)

    async def conclude(self, log: JobLog, record: Sequence[Event]) -> None:
        """Send the result and settle the job that no executor ever held; each part may be repeated."""
        job = fold(record)
        await send_result(self._bus, job)
        await self._latest.end(log.tenant, run_result(job))
        has_session = job.life.submitted is None or job.life.submitted.session_id is not None
        await self._settle_unheld(log.tenant, log.job_id, has_session=has_session)

    async def _settle_unheld(self, tenant: str, job_id: str, *, has_session: bool) -> None:
        """Settle a job that has ended before any executor held it."""
        await self._budgets.settle(tenant, job_id, Decimal(0))
        await self._places.end(tenant, job_id)
        if has_session:
            await self._turns.end(tenant, job_id, ran=False)
