"""Run tickets in, held jobs out: one loop a lane."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Coroutine, Sequence
from contextlib import AbstractContextManager, suppress
from sys import intern
from typing import Any

import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg
from pydantic import ValidationError

from wayline.chassis import Bus, Delivery, Failpoint
from wayline.chassis.handling.heartbeat import Heartbeat
from wayline.chassis.handling.pull import Puller
from wayline.chassis.handling.worker import pause_s, unless_it_keeps_failing
from wayline.chassis.topology import RUN_BACKLOGS, Consumer
from wayline.contracts import events as e
from wayline.contracts.base import explain, slim_all
from wayline.contracts.chat import ToolCall
from wayline.contracts.errors import Reject, Retry
from wayline.contracts.jobs import Failure, RunJob
from wayline.contracts.tools import RUN_AGENT, Effect, ToolError, ToolReply
from wayline.executor.adapters.session_histories import Past
from wayline.executor.decide.session_history import lost_note
from wayline.executor.hold.claim import (
    CLAIMS_MAX,
    Ticket,
    Verdict,
    judge,
    reading_may_kill,
    wrote_nothing,
    wrote_nothing_at_all,
)
from wayline.executor.hold.heartbeat import Heartbeats
from wayline.executor.hold.held_job import HeldJob
from wayline.executor.hold.log_writer import ClaimLost, LogWriter
from wayline.executor.hold.signals import SIGNALLED
from wayline.executor.perform.job_run import RunServices
from wayline.executor.perform.tool_calls import TOOL_TIMEOUT_S
from wayline.executor.run_job import run_job
from wayline.journal import Call, Fenced, Head, Job, JobLog, Money, Shared, State, fold, unknown_types
from wayline.telemetry import Home, Span, Telemetry, metrics, names

log = structlog.get_logger()

UNKNOWN_RETRY_S = 5.0
"""How soon a job with events from a newer build is offered again, hopefully to a newer executor."""

CRASH_LOOP = "crash_loop"
SETTLING_CLAIMS_MAX = 2 * CLAIMS_MAX
"""Claims in a row after which a job is given up without a look at its open calls: settling them kills as well."""
GIVEN_UP = f"claimed {CLAIMS_MAX} times in a row without getting anywhere"


def own_name() -> str:
    """Return the name of this executor in logs of jobs and in answers."""
    return f"{socket.gethostname()}-{os.getpid()}"


class _Unreadable(Exception):
    """A log that a newer build has written to."""


class Lane:
    """One consumer of run tickets, and the jobs this process holds from it."""

    def __init__(
        self, bus: Bus, telemetry: Telemetry, services: RunServices, consumer: Consumer, *, slots: int
    ) -> None:
        self._bus = bus
        self._telemetry = telemetry
        self._services = services
        self._consumer = consumer
        self._name = own_name()
        self._puller = Puller(bus, consumer, self._on_ticket, slots=slots, backlog=RUN_BACKLOGS[consumer])
        self._held: dict[int, HeldJob] = {}
        self._by_job: dict[tuple[str, str], HeldJob] = {}
        self._draining = asyncio.Event()
        self._unheld = Heartbeat(consumer.ack_wait_s / 3)
        self._shared = Shared()

    async def start(self) -> None:
        info = await self._bus.js.consumer_info(self._consumer.stream, self._consumer.name)
        self._unheld.every_s = (info.config.ack_wait or self._consumer.ack_wait_s) / 3
        self._heartbeats = Heartbeats(self._unheld.every_s)
        self._hints = [await self._bus.nc.subscribe(subject, cb=self._on_hint) for subject in SIGNALLED]
        self._bus.reconnected.append(self._tell_all)
        await self._puller.start()

    async def stop(self, grace_s: float) -> None:
        """Take no more tickets; model calls in flight may end within the grace, then every job is handed back."""
        self._draining.set()
        for held in self._held.values():
            held.wake()
        await self._puller.stop(grace_s)
        self._unheld.stop()
        for hints in self._hints:
            with suppress(nats_errors.Error):
                await hints.unsubscribe()

    async def _on_hint(self, message: Msg) -> None:
        _, tenant, job_id = message.subject.split(".")
        held = self._by_job.get((tenant, job_id))
        if held:
            held.tell()

    def _tell_all(self) -> None:
        for held in self._held.values():
            held.tell()

    async def _on_ticket(self, message: Msg) -> None:
        run = await self._heard(message)
        if run is None:
            return
        delivery = Delivery.of(message)
        ticket = Ticket(run.tenant, run.job, run.at, delivery.sequence, delivery.deliveries)
        taken = _Taken(ticket.delivery)
        taking = self._take(ticket, message, _brought(run, ticket), taken)
        # What the ticket brought must not stay in memory for as long as the job runs.
        del run
        try:
            await unless_it_keeps_failing(
                self._bus,
                message,
                self._traced(ticket, message, taking),
                deliveries=lambda: taken.tries,
                last=lambda: self._settle_unread(ticket, taken),
                # The claim of a holder that failed counts towards a crash loop.
                forgotten=lambda: taken.held,
            )
        except Retry as error:
            log.warning("ticket given back", job=ticket.job_id, why=str(error))
            with suppress(nats_errors.Error):
                await message.nak(delay=error.after_s)

    async def _heard(self, message: Msg) -> RunJob | None:
        """Read what a ticket says; None: it has been dealt with."""
        delivery = Delivery.of(message)
        held = self._held.get(delivery.sequence)
        if held is not None:
            held.adopt(message)
            return None
        try:
            run = await self._bus.hear(RunJob, message)
            _lighten(message, run)
            return run
        except Reject as error:
            await self._bus.put_aside(delivery, code=error.code, reason=str(error))
            await message.ack()
            return None

    async def _traced(self, ticket: Ticket, message: Msg, taking: Coroutine[Any, Any, None]) -> None:
        with self._handling(ticket, message):
            await taking

    def _handling(self, ticket: Ticket, message: Msg) -> AbstractContextManager[Span]:
        home = Home.of(ticket.tenant, ticket.job_id)
        attributes = {names.NATS_DELIVERIES: ticket.delivery, names.TENANT: ticket.tenant, names.JOB: ticket.job_id}
        return self._telemetry.handling(RunJob.subject_template, message.headers, home=home, attributes=attributes)

    async def _settle_unread(self, ticket: Ticket, taken: _Taken) -> None:
        """Settle a job that has ended and that cannot be read, before its ticket is put aside."""
        if taken.ended is not None:
            await self._services.budgets.settle(_unread(taken.ended, ticket))

    async def _take(self, ticket: Ticket, message: Msg, head: Head | None, taken: _Taken) -> None:
        """Judge a ticket by the log's last record and do what that says; a lost race is judged again.

        The record that a ticket brought is believed to be the last until the claim is appended after it, or refused.
        """
        jobs = JobLog(self._bus, ticket.tenant, ticket.job_id)
        while True:
            if head is None:
                head = await jobs.last()
            match judge(head, ticket):
                case Verdict.CLAIM:
                    assert head is not None
                    try:
                        held = await self._claim(jobs, head, ticket, message)
                        taken.held = held is not None
                        # The record that the claim was decided by must not stay in memory for as long as the job runs.
                        head = None
                        return await self._hold(held) if held else None
                    except ClaimLost:
                        head = None
                case Verdict.SETTLE:
                    assert head is not None
                    taken.end(head, ticket)
                    if head.values[-1].get("error", {}).get("code") == CRASH_LOOP:
                        # Whoever gave the job up may have died before it had put the ticket aside.
                        return await self._put_aside(jobs, head.events, message)
                    job = fold([event async for event in jobs.read()])
                    return await self._kept(message, self._services.follow_up.ended(job, message))
                case Verdict.PARKED:
                    assert head is not None
                    last = head.events[-1]
                    assert isinstance(last, e.JobParked)
                    return await self._kept(
                        message, self._services.follow_up.parked(ticket.tenant, head, last, message)
                    )
                case Verdict.STALE:
                    return await message.ack()
                case Verdict.FORGET:
                    return None

    async def _claim(self, jobs: JobLog, head: Head, ticket: Ticket, message: Msg) -> HeldJob | None:
        """Return the job as it will be held; None: there is nothing to hold, and the ticket has been dealt with."""
        attempt = 1 if head.state is not State.ACTIVE else head.attempt + 1
        if attempt > CLAIMS_MAX:
            await self._give_up(jobs, head, ticket, message, attempt)
            return None
        # What may kill comes next: such a claim has to count, whatever becomes of us.
        early = await self._claimed(jobs, head, ticket, attempt) if reading_may_kill(head, ticket) else None
        try:
            events = await self._read(jobs, head)
            if early is None and wrote_nothing(head, ticket):
                early = await self._claimed(jobs, head, ticket, attempt)
            job = self._folded(events)
            past = await self._services.histories.past(job)
        except (_Unreadable, Retry) as error:
            if early is not None and not await self._handed_back(early[0], str(error)):
                return None
            if isinstance(error, Retry):
                raise
            return await self._leave(ticket, message, str(error))
        if early is not None:
            writer = LogWriter(jobs, early[0].head, fold(early[1], job))
        else:
            writer, _ = self._claiming(jobs, head, job, ticket, attempt)
        if past is not None:
            _go_on_with(writer, past)
        return HeldJob(self._bus, ticket, message, writer, draining=self._draining, heartbeats=self._heartbeats)

    async def _read(self, jobs: JobLog, head: Head) -> list[e.Event]:
        """Read all that happened to a job until now. Raises _Unreadable where this build does not understand it all."""
        records = [head.values] if head.state is State.NEW else await jobs.records(head.sequence)
        unknown = unknown_types([value for record in records for value in record])
        if unknown:
            raise _Unreadable(f"it has events of types {sorted(unknown)}")
        try:
            return self._shared.events(value for record in records for value in record)
        except ValidationError as error:
            raise _Unreadable(f"its log cannot be read: {explain(error)}") from None

    async def _claimed(self, jobs: JobLog, head: Head, ticket: Ticket, attempt: int) -> tuple[LogWriter, list[e.Event]]:
        """Claim by a record of its own, written from the last record alone, and what it says."""
        writer, claim = self._claiming(jobs, head, _unread(head, ticket), ticket, attempt)
        await writer.append(Failpoint.EXECUTOR_CLAIM_BEFORE, Failpoint.EXECUTOR_CLAIM_AFTER)
        return writer, claim

    def _claiming(
        self, jobs: JobLog, head: Head, job: Job, ticket: Ticket, attempt: int
    ) -> tuple[LogWriter, list[e.Event]]:
        """Return a log writer whose first record claims the job, and the events that say so."""
        writer = LogWriter(jobs, head, job)
        claim: dict[str, Any] = {"owner": ticket.owner, "attempt": attempt, "epoch": head.epoch + 1}
        writer.claim(**claim)
        noted: list[e.Event] = [writer.note(e.JobClaimed, executor=self._name, **claim)]
        if head.state is State.PARKED:
            noted.append(writer.note(e.JobResumed))
        return writer, noted

    def _folded(self, events: Sequence[e.Event]) -> Job:
        """Return the job that a log folds to, in as little memory as a thousand like it should take."""
        job = fold(events)
        slim_all((job.life.submitted, job.conversation.messages))
        return job

    async def _handed_back(self, writer: LogWriter, why: str) -> bool:
        """Take back a claim that leads to nothing here; False: the job is somebody else's already."""
        writer.note(e.JobHandedBack, reason=why)
        try:
            await writer.append(Failpoint.EXECUTOR_HAND_BACK_BEFORE, Failpoint.EXECUTOR_HAND_BACK_AFTER)
        except Fenced:
            return False
        return True

    async def _leave(self, ticket: Ticket, message: Msg, why: str) -> None:
        """Do not hold what this build cannot read whole: a tolerant writer would go on from a wrong state."""
        metrics.unknown_events.labels("executor").inc()
        log.warning("job left to a newer build", job=ticket.job_id, why=why)
        await message.nak(delay=max(UNKNOWN_RETRY_S, pause_s(ticket.delivery)))

    async def _hold(self, held: HeldJob) -> None:
        key = (held.ticket.tenant, held.ticket.job_id)
        self._held[held.ticket.sequence] = self._by_job[key] = held
        metrics.jobs_in_flight.labels(self._consumer.name).inc()
        try:
            await run_job(self._services, held)
        finally:
            metrics.jobs_in_flight.labels(self._consumer.name).dec()
            # Two deliveries of one ticket may race for its claim: each takes away only itself.
            if self._held.get(held.ticket.sequence) is held:
                del self._held[held.ticket.sequence]
            if self._by_job.get(key) is held:
                del self._by_job[key]

    async def _give_up(self, jobs: JobLog, head: Head, ticket: Ticket, message: Msg, attempt: int) -> None:
        """End a job that keeps killing its holders, before folding it: the fold may be what kills.

        Its open tool calls are settled first, unless that was tried before and killed, too.
        """
        open_calls: list[dict[str, Any]] = []
        if not wrote_nothing_at_all(head, ticket) and attempt <= SETTLING_CLAIMS_MAX:
            open_calls = await self._open_calls(jobs, head)
        writer, _ = self._claiming(jobs, head, _unread(head, ticket), ticket, attempt)
        if open_calls:
            await writer.append(Failpoint.EXECUTOR_CLAIM_BEFORE, Failpoint.EXECUTOR_CLAIM_AFTER)
            await self._kept(message, self._settle_calls(writer, open_calls))
        end = writer.note(
            e.JobFailed, error=Failure(code=CRASH_LOOP, message=GIVEN_UP), cost_usd=writer.job.money.cost_usd
        )
        await writer.append(Failpoint.EXECUTOR_END_BEFORE, Failpoint.EXECUTOR_END_AFTER)
        await self._put_aside(jobs, [end], message)

    async def _open_calls(self, jobs: JobLog, head: Head) -> list[dict[str, Any]]:
        """Read the intents of a log without an end, record by record: no more than one is in memory."""
        found: dict[tuple[int, str], dict[str, Any]] = {}
        async for value in jobs.values(head.sequence):
            if value["type"] == "tool.requested":
                found[value["step"], value["call"]] = value
            elif value["type"] == "tool.completed":
                found.pop((value["step"], value["call"]), None)
        return list(found.values())

    async def _settle_calls(self, writer: LogWriter, open_calls: list[dict[str, Any]]) -> None:
        """Have the ledger end each call and note how it ended; a tool's result is in the ledger alone."""
        for value in open_calls:
            wanted = ToolCall(call=value["call"], tool=value["tool"], arguments=value["arguments"])
            call = Call(wanted=wanted, key=value["key"], effect=Effect(value["effect"]))
            job = writer.job._replace(model=writer.job.model._replace(step=value["step"]))
            if wanted.tool == RUN_AGENT:
                reply = await self._stop_child(writer, job, call)
            else:
                reply = await self._services.tools.settle(job, call, timeout_s=TOOL_TIMEOUT_S)
            writer.note(
                e.ToolCompleted,
                e.SpanRef.model_validate(value["trace"]),
                step=value["step"],
                call=value["call"],
                tool=value["tool"],
                status="success" if reply.status == "success" else "failed",
                error=reply.error,
                cost_usd=reply.cost_usd,
            )

    async def _stop_child(self, writer: LogWriter, job: Job, call: Call) -> ToolReply:
        """Tell the job of a call to stop, without waiting for its end."""
        first = fold(await JobLog(self._bus, job.tenant, job.job_id).first())
        job = first._replace(model=job.model)
        await self._services.children.stop(job, call, GIVEN_UP, lane=writer.head.lane)
        return ToolReply(status="failed", error=ToolError(code="cancelled", message=GIVEN_UP))

    async def _put_aside(self, jobs: JobLog, last: Sequence[e.Event], message: Msg) -> None:
        """Put a job in a crash loop aside; read only the log's ends, because what lies between may be what kills."""
        await self._bus.put_aside(Delivery.of(message), code=CRASH_LOOP, reason=GIVEN_UP)
        job = fold([*await jobs.first(), *last])
        # What its calls may have cost is in what lies between: all that is held for it counts as not settled.
        costs = job.money.costs.model_copy(update={"unsettled_upper_usd": None})
        job = job._replace(money=job.money._replace(costs=costs))
        await self._kept(message, self._services.follow_up.ended(job, message))

    async def _kept(self, message: Msg, doing: Coroutine[Any, Any, None]) -> None:
        """Do what may take long with a ticket that nobody holds; it must not come again meanwhile, a slot each time."""
        self._unheld.begin(message)
        try:
            await doing
        finally:
            self._unheld.end(message)


class _Taken:
    """How far a delivery of a ticket has come."""

    def __init__(self, delivery: int) -> None:
        self.tries = delivery
        """Deliveries that may have failed as this one did."""
        self.held = False
        self.ended: Head | None = None

    def end(self, head: Head, ticket: Ticket) -> None:
        """Note that the job has ended; the deliveries under which it ran did not fail."""
        self.ended = head
        if head.owner_ticket == ticket.sequence:
            self.tries = ticket.delivery - head.owner_delivery


def _brought(run: RunJob, ticket: Ticket) -> Head | None:
    """Return the record that a ticket brings, while nobody can have written after it because of this ticket."""
    return Head.brought(run.at, run.record) if run.record is not None and ticket.delivery == 1 else None


def _lighten(message: Msg, run: RunJob) -> None:
    """Leave of a ticket what an ack or a dead letter needs: it stays in memory for as long as its job runs."""
    message.data = RunJob(job=run.job, at=run.at).to_wire()
    kept = {name: value for name, value in (message.headers or {}).items() if not name.startswith("Nats-")}
    message.headers = {intern(name): intern(value) for name, value in kept.items()}


def _go_on_with(writer: LogWriter, past: Past) -> None:
    """Pin what a job goes on with in its session, where that is not done, and hold the messages beside the job."""
    if past.handed_to is not None:
        writer.note(e.SessionHandedOver, to=past.handed_to)
    if past.pinned is not None:
        continued = writer.note(e.SessionContinued, **past.pinned)
        if continued.lost is not None:
            writer.note(e.ContextInjected, note=lost_note(continued.lost, continued.context))
    writer.hold_history(past.history)


def _unread(head: Head, ticket: Ticket) -> Job:
    """Return what a log's last record says by itself: enough to write on."""
    return Job(job_id=ticket.job_id, tenant=ticket.tenant, seq=head.seq, money=Money(cost_usd=head.cost))
