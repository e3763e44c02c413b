"""What the router does with each message it hears."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

from wayline.chassis import Bus, Delivery, Failpoint, reach
from wayline.contracts import ids
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
from wayline.contracts.base import Message
from wayline.contracts.budgets import Settled, SettleJob
from wayline.contracts.chat import Attachment
from wayline.contracts.errors import Conflict, NotFound, Reject, Retry
from wayline.contracts.events import Event, JobSubmitted
from wayline.contracts.jobs import (
    SECONDS_MAX,
    Cancel,
    DecideApproval,
    Due,
    Expire,
    Failure,
    PlanJob,
    Planned,
    RaiseBudget,
    RunJob,
    Signal,
    StartChild,
    Steer,
    SubmitJob,
)
from wayline.contracts.models import DeleteModel, ListModels, ModelCard, ModelDeleted, ModelList, PutModel
from wayline.journal import Branch, Fenced, Head, JobLog, State, branch, fold, send_result
from wayline.router import admission, forks
from wayline.router.adapters.attachments import Attachments, fixed
from wayline.router.adapters.availability import Availability
from wayline.router.adapters.budgets import Budgets
from wayline.router.adapters.catalogue import Catalogue
from wayline.router.adapters.families import Families
from wayline.router.adapters.firings import Firings
from wayline.router.adapters.log_capacity import LogCapacity
from wayline.router.adapters.sessions import Sessions
from wayline.router.adapters.shares import TENANT_FULL, Shares
from wayline.router.adapters.signal_share import SignalShare
from wayline.router.adapters.tables import Tables
from wayline.router.adapters.ticket_lanes import TicketLanes
from wayline.router.adapters.turns import Turns, waits_for_turn
from wayline.router.adapters.usage import Usage
from wayline.router.admission import Admitted
from wayline.router.agents import check_agent
from wayline.router.bundled import bundled
from wayline.routing import Decision, RoutingInput, choose_route
from wayline.routing.slots import named_by


def now() -> datetime:
    """Return the moment that a first record is written; whatever is decided takes it from there."""
    return datetime.now(UTC)


class Router:
    """Accepts jobs, pins their agent, decides their route and wakes the parked."""

    def __init__(
        self,
        bus: Bus,
        tables: Tables,
        catalogue: Catalogue,
        budgets: Budgets,
        *,
        attachments: Attachments,
        sessions: Sessions,
        turns: Turns,
        families: Families,
        availability: Availability,
        usage: Usage,
        signal_share: SignalShare,
        shares: Shares,
        ticket_lanes: TicketLanes,
        firings: Firings,
        default_model: str,
    ) -> None:
        self._bus = bus
        self._log_capacity = LogCapacity(bus)
        self._tables = tables
        self._catalogue = catalogue
        self._budgets = budgets
        self._attachments = attachments
        self._sessions = sessions
        self._turns = turns
        self._families = families
        self._availability = availability
        self._usage = usage
        self._signal_share = signal_share
        self._shares = shares
        self._ticket_lanes = ticket_lanes
        self._firings = firings
        self._default_model = default_model

    async def on_submit(self, job: SubmitJob, delivery: Delivery) -> list[Message]:
        """Give a job its log and its first ticket, once, however often it is submitted."""
        await self._tables.require_tenant(job.tenant)
        job_id = admission.job_id_of(job.job_id, delivery)
        admission.reply_to_of(job.tenant, delivery)
        admission.require_text(job)
        log = JobLog(self._bus, job.tenant, job_id)
        # A message that comes for the first time is nearly always of a new job, and where it is not the append says so.
        head = await log.last() if delivery.deliveries > 1 else None
        if head is None:
            head = await self._new(log, job, job_id, delivery)
        messages = await self._spoken(job, job_id, head)
        if job.options.when_busy == "steer" and job.session_id is not None:
            await self._turns.steer(job.tenant, job.session_id)
        if head.state is State.ENDED and head.epoch == 0:
            await self.conclude(log, [event async for event in log.read()])
        elif head.state is State.PARKED and head.epoch == 0:
            await self._queue_for_turn(job, job_id)
        return messages

    async def _new(self, log: JobLog, job: SubmitJob, job_id: str, delivery: Delivery) -> Head:
        """Write a job's first record; only what is new can be refused or has to wait."""
        try:
            await self._log_capacity.require()
            await self._shares.require(job.tenant)
            return await self._begin(log, job, job_id, delivery)
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
            admitted = await self._tables.admit(request.tenant, admission.Wish.of(first.job, first.job_id))
            if admitted is None:
                raise _no_agent(request.agent)
            parent_id = request.parent.job_id
            admitted = await self._families.adopt(request.tenant, first.job_id, admitted, parent_id=parent_id)
            record = await self._first_record(first, admitted, None, seconds_max=request.max_seconds)
        except (Reject, Retry):
            head = await log.last()
            if head is None:
                raise
            return head
        return await self._append_first(log, first, record)

    async def first_ticket(self, tenant: str, job_id: str, head: Head) -> RunJob:
        """Return the first ticket of a job, as it is to be queued."""
        ticket = RunJob(tenant=tenant, lane=head.lane, job=job_id, at=head.sequence, record=head.carried())
        return await self._ticket_lanes.queue(ticket)

    async def _begin(self, log: JobLog, job: SubmitJob, job_id: str, delivery: Delivery) -> Head:
        reach(Failpoint.ROUTER_RESERVE_BEFORE)
        wish = admission.Wish.of(job, job_id)
        if wish.session_id is not None and wish.when_busy == "refuse":
            # An end that has not been noticed yet must not count as busy.
            await self._turns.first_open(job.tenant, wish.session_id)
        branched = await self._branch(job)
        admitted = await self._tables.admit(job.tenant, wish)
        reach(Failpoint.ROUTER_RESERVE_AFTER)
        if admitted is None:
            raise _no_agent(job.agent)
        schedule = await self._firings.fired_by(job.tenant, job_id, delivery)
        first = admission.submitted(job, job_id, delivery, now(), turn=admitted.turn, schedule=schedule)
        return await self._append_first(log, first, await self._first_record(first, admitted, branched))

    async def _append_first(self, log: JobLog, first: JobSubmitted, record: list[Event]) -> Head:
        """Append a first record, or return the last one of a log that somebody else has begun."""
        try:
            reach(Failpoint.ROUTER_RECORD_BEFORE)
            head = await log.begin(record, content_hash=first.content_hash, lane=first.job.options.lane)
            reach(Failpoint.ROUTER_RECORD_AFTER)
            return head
        except Fenced:
            # Somebody was faster: their record stands, and we speak from it.
            head = await log.last()
            assert head is not None
            if head.state is State.ENDED and head.epoch == 0:
                # No executor will settle what we have just reserved beside it.
                has_session = admission.Wish.of(first.job, first.job_id).session_id is not None
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
        inputs = await self._routing_input(job.tenant, job, admitted, files=files)
        decision = await self._decide(job.tenant, inputs)
        agents = await self._families.startable(job.tenant, admitted.agent.config.agents)
        decided = admission.routed(first, admitted, inputs, decision, agents=agents, seconds_max=seconds_max)
        refusal = admission.turnless(job, admitted) or admission.unaffordable(job, decision, admitted)
        if job.options.dry_run:
            return admission.planned(first, decided, refusal)
        if refusal:
            return admission.refused(first, refusal)
        if branched is not None:
            return forks.forked(first, decided, branched, today)
        before = await self._open_before(job, admitted)
        if before is not None:
            return admission.parked_for_turn(first, decided, before)
        return [first, decided]

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

    async def _queue_for_turn(self, job: SubmitJob, job_id: str) -> None:
        """Do what follows the first record of a job that waits for its turn: the jobs before it may have ended by now.

        Each part may be repeated.
        """
        if job.session_id is None:
            return
        if job.options.when_busy == "interrupt" and (turn := await self._turns.turn_of(job.tenant, job_id)):
            await self._turns.interrupt(job.tenant, job.session_id, turn, by=job_id)
        await self._turns.wake_next(job.tenant, job.session_id)

    async def _routing_input(
        self, tenant: str, job: SubmitJob, admitted: Admitted, *, files: tuple[Attachment, ...] | None = None
    ) -> RoutingInput:
        """Gather what a job asks of its route: its files, its session's cache and its agent's use included.

        `files`: those that are known already.
        """
        agent, warm = admitted.agent, None
        seen = await self._usage.seen(tenant, agent.name, now=now())
        if files is None:
            files = await self._attachments.of(tenant, (*agent.config.pinned, *job.parts()))
        if job.session_id is not None:
            warm = await self._sessions.warm(tenant, job.session_id, agent, now=now())
        return RoutingInput(
            job,
            agent.config,
            left_usd=admitted.bound_usd,
            cap_usd=admitted.cap_usd,
            warm=warm,
            attachments=files,
            observed=seen.observed,
            tools=seen.tools,
        )

    async def _decide(self, tenant: str, inputs: RoutingInput) -> Decision:
        cards = await self._catalogue.usable(tenant)
        away = self._availability.away({*(card.name for card in cards), *named_by(inputs.config.routing)})
        return choose_route(inputs, default_model=self._default_model, cards=cards, away=away)

    async def _spoken(self, job: SubmitJob, job_id: str, head: Head) -> list[Message]:
        if head.content_hash != job.content_hash():
            raise Conflict(f"job {job_id!r} is already another job", code="job_id_conflict")
        if head.state is State.NEW:
            return [await self.first_ticket(job.tenant, job_id, head)]
        return []

    async def on_refused(self, delivery: Delivery, code: str, reason: str) -> None:
        """Write the log of a job that will not run, release what was reserved for it, and tell whoever asked.

        A submission that gets no log is answered all the same, where it says to whom.
        """
        found = admission.salvaged(delivery)
        job = found.job
        turn = None
        if found.has_log and job.session_id is not None:
            turn = await self._turns.turn_of(job.tenant, found.job_id)
        await self._firings.note_refused(job.tenant, found.job_id, delivery, f"{code}: {reason}")
        schedule = await self._firings.fired_by(job.tenant, found.job_id, delivery)
        first = admission.submitted(job, found.job_id, delivery, now(), turn=turn, schedule=schedule)
        record = admission.refused(first, Failure(code=code, message=reason))
        if code == TENANT_FULL:
            record = admission.refused(admission.without_input(first), Failure(code=code, message=reason))
        known = found.has_log and await self._tables.is_tenant(job.tenant)
        if not known or not await self._shares.may_store(job.tenant):
            await send_result(self._bus, fold(record))
            if turn is not None:
                # It has no log that could say so, and the next job of its session is not to wait for it.
                await self._turns.end(job.tenant, found.job_id)
            return None
        log = JobLog(self._bus, job.tenant, found.job_id)
        try:
            await log.begin(record, content_hash=first.content_hash, lane=job.options.lane)
        except Fenced:
            # The job exists: a conflicting or broken second submission changes nothing about it, unless the log is
            # our own refusal, whose last steps may be missing.
            head = await log.last()
            if head is not None and head.content_hash != first.content_hash:
                return await send_result(self._bus, fold(record))
            if head is None or head.state is not State.ENDED:
                return
            record = [event async for event in log.read()]
            if len(record) != 2 or not isinstance(record[0], JobSubmitted):
                return
        await self.conclude(log, record)

    async def conclude(self, log: JobLog, record: Sequence[Event]) -> None:
        """Send the result and settle the job that no executor ever held; each part may be repeated."""
        job = fold(record)
        await send_result(self._bus, job)
        has_session = job.life.submitted is None or job.life.submitted.session_id is not None
        await self._settle_unheld(log.tenant, log.job_id, has_session=has_session)

    async def _settle_unheld(self, tenant: str, job_id: str, *, has_session: bool) -> None:
        """Settle a job that has ended before any executor held it."""
        await self._budgets.settle(tenant, job_id, Decimal(0))
        if has_session:
            await self._turns.end(tenant, job_id, ran=False)

    async def on_signal(self, heard: Signal, delivery: Delivery) -> list[Message]:
        """Queue a parked job that has something new to read; anybody else reads it by themselves."""
        self._signal_share.note(heard.tenant)
        if isinstance(heard.signal, Steer):
            # A parked job hears it when something else lets it go on.
            return []
        if isinstance(heard.signal, RaiseBudget) and heard.signal.budget_usd is not None:
            # Before the job is woken: it will ask at once.
            await self._budgets.raise_cap(heard.tenant, heard.job_id, heard.signal.budget_usd)
        if isinstance(heard.signal, Cancel):
            await self._families.cancel_children(heard.tenant, heard.job_id)
        return await self._wake(heard.tenant, heard.job_id, delivery, early=isinstance(heard.signal, Cancel))

    async def on_decide_approval(self, decided: DecideApproval, delivery: Delivery) -> list[Message]:
        """Queue a parked job for which a decision on an approval has come."""
        self._signal_share.note(decided.tenant)
        return await self._wake(decided.tenant, decided.job_id, delivery)

    async def _wake(self, tenant: str, job_id: str, delivery: Delivery, *, early: bool = False) -> list[Message]:
        """Return the ticket of a job that is parked and has not seen this signal; `early`: also before its turn."""
        head = await JobLog(self._bus, tenant, job_id).last()
        if head is None or head.state is not State.PARKED or delivery.sequence <= head.signals_seen:
            return []
        if waits_for_turn(head) and not early:
            # It reads everything else when its turn has come.
            return []
        reach(Failpoint.ROUTER_WAKE_BEFORE)
        wake = RunJob(tenant=tenant, lane=head.lane, job=job_id, at=head.sequence)
        return [await self._ticket_lanes.queue(wake)]

    async def on_due(self, due: Due, _: Delivery) -> list[Message]:
        """Turn the end of a wait into a signal like any other."""
        return [Signal(tenant=due.tenant, job_id=due.job_id, signal=Expire(wait_id=due.wait_id))]

    async def on_plan(self, request: PlanJob) -> Planned:
        """Decide as for a real job, and run nothing."""
        job = request.job
        wish = admission.Wish.of(job, job.job_id or "")
        admitted = await self._tables.consider(request.tenant, wish)
        if admitted is None:
            raise _no_agent(job.agent)
        decision = await self._decide(request.tenant, await self._routing_input(request.tenant, job, admitted))
        agent, refusal = admitted.agent, admission.unaffordable(job, decision, admitted)
        return Planned(agent=agent.name, agent_version=agent.version, route=decision.route, refusal=refusal)

    async def on_settle(self, request: SettleJob) -> Settled:
        """Turn a job's reservation into its cost; remember what it used and left warm, and wake its session's next."""
        settled = await self._budgets.on_settle(request)
        if settled.settled:
            self._ticket_lanes.note_end(request.tenant)
        if request.used is not None and settled.settled:
            self._usage.note(request.tenant, request.used)
        if request.left_warm is not None:
            await self._sessions.remember(request.tenant, request.left_warm, now=now())
        if request.has_session:
            # Also where it was settled before: whoever settled it may have died before it woke anybody.
            await self._turns.end(request.tenant, request.job_id)
        if ids.is_child(request.job_id):
            await self._wake_parent(request.tenant, request.job_id)
        return settled

    async def _wake_parent(self, tenant: str, job_id: str) -> None:
        """Queue the job that waits for a child whose end is in its log; also where it was settled before."""
        ticket = await self._families.wake_ticket(tenant, job_id)
        if ticket is None:
            return
        reach(Failpoint.ROUTER_PARENT_BEFORE)
        await self._bus.publish(await self._ticket_lanes.queue(ticket), msg_id=ticket.msg_id)
        reach(Failpoint.ROUTER_PARENT_AFTER)

    async def on_get_agent(self, request: GetAgent) -> Agent:
        """Give the newest version of an agent."""
        return await self._tables.agent(request.tenant, request.name)

    async def on_list_agents(self, request: ListAgents) -> AgentList:
        """Give the newest version of every agent."""
        return await self._tables.agents(request.tenant)

    async def on_put_agent(self, request: PutAgent) -> Agent:
        """Save an agent that can do its work; what is pinned to it keeps the bytes of now."""
        if not await self._tables.is_tenant(request.tenant):
            raise NotFound("tenant", request.tenant)
        config = request.config
        check_agent(config, (await self._catalogue.all(request.tenant)).models)
        if config.pinned:
            pinned = fixed(config.pinned, await self._attachments.of(request.tenant, config.pinned))
            config = config.model_copy(update={"pinned": pinned})
        return await self._tables.put_agent(request.tenant, request.name, config)

    async def on_delete_agent(self, request: DeleteAgent) -> Deleted:
        """Retire an agent."""
        return Deleted(deleted=await self._tables.delete_agent(request.tenant, request.name))

    async def on_restore_agent(self, request: RestoreAgent) -> Agent:
        """Bring an agent back that was removed or changed."""
        if not await self._tables.is_tenant(request.tenant):
            raise NotFound("tenant", request.tenant)
        return await self._tables.restore_agent(request.tenant, request.name, bundled().get(request.name))

    async def on_list_models(self, request: ListModels) -> ModelList:
        """Give every model that the tenant can use."""
        return await self._catalogue.all(request.tenant)

    async def on_put_model(self, request: PutModel) -> ModelCard:
        """Keep a card of the tenant's own."""
        if not await self._tables.is_tenant(request.tenant):
            raise NotFound("tenant", request.tenant)
        return await self._catalogue.put(request.tenant, request.card)

    async def on_delete_model(self, request: DeleteModel) -> ModelDeleted:
        """Take a card of the tenant's own back."""
        return ModelDeleted(deleted=await self._catalogue.delete(request.tenant, request.provider, request.model))


def _no_agent(name: str) -> Reject:
    return Reject(f"no agent {name!r}: save it first, or use one of GET /v1/agents", code="unknown_agent", status=404)
