"""Run tickets in, held jobs out: one loop a lane."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, suppress
from functools import partial
from sys import intern

import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg
from opentelemetry.trace import StatusCode

from wayline.chassis import Bus, Delivery
from wayline.chassis.handling.ack_wait import ack_wait
from wayline.chassis.handling.heartbeat import Heartbeat
from wayline.chassis.handling.pull import Puller
from wayline.chassis.handling.worker import pause_s
from wayline.chassis.topology import RUN_BACKLOGS, Consumer
from wayline.contracts import events as e
from wayline.contracts.errors import Reject, Retry
from wayline.contracts.jobs import RunJob
from wayline.executor.claim_jobs import JobClaims, Unreadable
from wayline.executor.crash_loops import CRASH_LOOP, CrashLoops
from wayline.executor.decide.approvals import judge_decision
from wayline.executor.decide.client_calls import end_calls
from wayline.executor.finish_tickets import TicketFinisher
from wayline.executor.hold.claim import (
    CLAIMS_MAX,
    Ticket,
    Verdict,
    judge,
)
from wayline.executor.hold.held_job import HeldJob
from wayline.executor.hold.job_heartbeats import Heartbeats
from wayline.executor.hold.log_writer import ClaimLost
from wayline.executor.hold.signals import SIGNALLED, Meanings
from wayline.executor.hold.ticket_end import Acked, Failed, Forgotten, GivenBack, TicketEnd
from wayline.executor.perform.job_run import RunServices
from wayline.executor.run_job import run_job
from wayline.journal import Head, JobLog, State, fold
from wayline.telemetry import JobTrace, Span, Telemetry, metrics, names

log = structlog.get_logger()

UNKNOWN_RETRY_S = 5.0
"""How soon a job with events from a newer build is offered again, hopefully to a newer executor."""


class Lane:
    """One consumer of run tickets, and the jobs this process holds from it."""

    def __init__(
        self, bus: Bus, telemetry: Telemetry, services: RunServices, consumer: Consumer, *, slots: int
    ) -> None:
        self._bus = bus
        self._telemetry = telemetry
        self._services = services
        self._consumer = consumer
        self._puller = Puller(bus, consumer, self._on_ticket, slots=slots, backlog=RUN_BACKLOGS[consumer])
        self._held: dict[int, HeldJob] = {}
        self._by_job: dict[tuple[str, str], HeldJob] = {}
        self._taken: dict[int, _Taken] = {}
        """Tickets that are being judged, by their place in the stream: no job is held by them yet."""
        self._finisher = TicketFinisher(bus, services.budgets)
        self._draining = asyncio.Event()
        self._unheld = Heartbeat(consumer.ack_wait_s / 3)
        self._claims = JobClaims(services.histories)
        self._meanings = Meanings(judge_decision, partial(end_calls, tokens_max=services.result_tokens_max))
        self._crash_loops = CrashLoops(bus, services, self._claims, self._unheld)

    async def start(self) -> None:
        self._unheld.every_s = await ack_wait(self._bus, self._consumer) / 3
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

    @property
    def in_hand(self) -> int:
        """Return how many tickets are in hand."""
        return self._puller.running

    async def hold(self) -> None:
        """Take no more tickets; jobs in hand go on."""
        await self._puller.hold()

    async def release(self) -> None:
        """Take tickets again."""
        self._draining.clear()
        self._puller.release()

    def hand_back(self) -> None:
        """Hand every job in hand to another executor, each after its present step."""
        self._draining.set()
        for held in self._held.values():
            held.wake()

    async def _on_hint(self, message: Msg) -> None:
        _, tenant, job_id = message.subject.split(".")
        held = self._by_job.get((tenant, job_id))
        if held:
            held.tell()

    def _tell_all(self) -> None:
        for held in self._held.values():
            held.tell()

    async def _on_ticket(self, message: Msg) -> None:
        delivery = Delivery.of(message)
        if self._adopts(delivery.sequence, message):
            return
        taken = self._taken[delivery.sequence] = _Taken(message)
        # From here on: whatever is read before the job is ours must not cost the ticket.
        self._unheld.begin(message)
        try:
            await self._handle(delivery, taken)
        finally:
            self._unheld.end(taken.message)
            if self._taken.get(delivery.sequence) is taken:
                del self._taken[delivery.sequence]

    def _adopts(self, sequence: int, message: Msg) -> bool:
        """Return whether a delivery is of a ticket that is in hand here: what holds it goes on with the new message."""
        held, taken = self._held.get(sequence), self._taken.get(sequence)
        if held is not None:
            held.adopt(message)
        elif taken is not None:
            self._unheld.end(taken.message)
            self._unheld.begin(message)
        if taken is not None:
            taken.message = message
        return held is not None or taken is not None

    async def _handle(self, delivery: Delivery, taken: _Taken) -> None:
        run = await self._heard(delivery, taken)
        if run is None:
            return
        ticket = Ticket(run.tenant, run.job, run.at, delivery.sequence, delivery.deliveries)
        message, taking = taken.message, self._take(ticket, _brought(run, ticket), taken)
        # What the ticket brought must not stay in memory for as long as the job runs.
        del run
        with self._handling(ticket, message) as span:
            end = await taking
            if isinstance(end, Failed):
                span.record_exception(end.error)
                span.set_status(StatusCode.ERROR)
            await self._finisher.finish(ticket, taken.message, end)

    async def _heard(self, delivery: Delivery, taken: _Taken) -> RunJob | None:
        """Read what a ticket says; None: it has been dealt with."""
        message = taken.message
        try:
            run = await self._bus.hear(RunJob, message)
            _lighten(message, run)
            return run
        except Reject as error:
            await self._bus.put_aside(delivery, code=error.code, reason=str(error))
            await message.ack()
            return None
        except Retry as error:
            log.warning("ticket given back", stream=delivery.stream, sequence=delivery.sequence, why=str(error))
            with suppress(nats_errors.Error):
                await message.nak(delay=error.after_s)
            return None

    def _handling(self, ticket: Ticket, message: Msg) -> AbstractContextManager[Span]:
        job_trace = JobTrace.of(ticket.tenant, ticket.job_id)
        attributes = {names.NATS_DELIVERIES: ticket.delivery, names.TENANT: ticket.tenant, names.JOB: ticket.job_id}
        return self._telemetry.handling(
            RunJob.subject_template, message.headers, job_trace=job_trace, attributes=attributes
        )

    async def _take(self, ticket: Ticket, head: Head | None, taken: _Taken) -> TicketEnd:
        """Judge a ticket by the log's last record, do what that says, and return how the ticket ends.

        The record that a ticket brought is believed to be the last until the claim is appended after it, or refused.
        A lost race is judged again. Raises what is unexpected once a job is held: its claim counts as one that died.
        """
        jobs = JobLog(self._bus, ticket.tenant, ticket.job_id)
        while True:
            try:
                found = await self._judged(jobs, ticket, head, taken)
            except ClaimLost:
                head = None
                continue
            except Retry as error:
                return GivenBack(str(error), error.after_s)
            except Exception as error:
                return Failed(error)
            if not isinstance(found, HeldJob):
                return found
            # The record that the claim was decided by must not stay in memory for as long as the job runs.
            head = None
            try:
                return await self._hold(found, taken)
            except ClaimLost:
                continue
            except Retry as error:
                return GivenBack(str(error), error.after_s)

    async def _judged(self, jobs: JobLog, ticket: Ticket, head: Head | None, taken: _Taken) -> TicketEnd | HeldJob:
        """Do what a ticket is still good for, or return the job that is to be held. Raises ClaimLost and Retry."""
        if head is None:
            head = await jobs.last()
        match judge(head, ticket):
            case Verdict.CLAIM:
                assert head is not None
                return await self._claim(jobs, head, ticket, taken)
            case Verdict.SETTLE:
                assert head is not None
                return await self._settle(jobs, head, taken)
            case Verdict.PARKED:
                assert head is not None
                last = head.events[-1]
                assert isinstance(last, e.JobParked)
                await self._services.follow_up.parked(ticket.tenant, head, last)
                return Acked()
            case Verdict.STALE:
                return Acked()
            case Verdict.FORGET:
                return Forgotten()

    async def _settle(self, jobs: JobLog, head: Head, taken: _Taken) -> TicketEnd:
        """Do what comes after the end of a job: its holder may not have lived to do it. Raises Retry."""
        try:
            if head.values[-1].get("error", {}).get("code") == CRASH_LOOP:
                # The executor that gave the job up may have died before it had put the ticket aside.
                return await self._crash_loops.put_aside(jobs, head.events, taken.message)
            await self._services.follow_up.ended(fold([event async for event in jobs.read()]))
            return Acked()
        except Retry:
            raise
        except Exception as error:
            return Failed(error, ended=head)

    async def _claim(self, jobs: JobLog, head: Head, ticket: Ticket, taken: _Taken) -> TicketEnd | HeldJob:
        """Return the job as it will be held, or how the ticket ends where there is nothing to hold."""
        attempt = 1 if head.state is not State.ACTIVE else head.attempt + 1
        if attempt > CLAIMS_MAX:
            return await self._crash_loops.give_up(jobs, head, ticket, taken.message, attempt)
        try:
            writer = await self._claims.claim(jobs, head, ticket, attempt)
        except Unreadable as error:
            # Not held by what cannot read it whole: a tolerant writer would go on from a wrong state.
            metrics.unknown_events.labels("executor").inc()
            why = f"left to a newer build: {error}"
            return GivenBack(why, max(UNKNOWN_RETRY_S, pause_s(ticket.delivery)))
        if writer is None:
            return Forgotten()
        return HeldJob(
            self._bus,
            ticket,
            # A redelivery may have come while the log was read.
            taken.message,
            writer,
            begun=head.state is State.ACTIVE,
            draining=self._draining,
            heartbeats=self._heartbeats,
            meanings=self._meanings,
        )

    async def _hold(self, held: HeldJob, taken: _Taken) -> TicketEnd:
        key = (held.ticket.tenant, held.ticket.job_id)
        self._held[held.ticket.sequence] = self._by_job[key] = held
        # It has a heartbeat of its own.
        self._unheld.end(taken.message)
        metrics.jobs_in_flight.labels(self._consumer.name).inc()
        try:
            return await run_job(self._services, held)
        finally:
            metrics.jobs_in_flight.labels(self._consumer.name).dec()
            # Two deliveries of one ticket may race for its claim: each takes away only itself.
            if self._held.get(held.ticket.sequence) is held:
                del self._held[held.ticket.sequence]
            if self._by_job.get(key) is held:
                del self._by_job[key]


class _Taken:
    """How far a ticket has come."""

    def __init__(self, message: Msg) -> None:
        self.message = message
        """Of its newest delivery here."""


def _brought(run: RunJob, ticket: Ticket) -> Head | None:
    """Return the record that a ticket brings, while nobody can have written after it because of this ticket."""
    return Head.brought(run.at, run.record) if run.record is not None and ticket.delivery == 1 else None


def _lighten(message: Msg, run: RunJob) -> None:
    """Leave of a ticket what an ack or a dead letter needs: it stays in memory for as long as its job runs."""
    message.data = RunJob(job=run.job, at=run.at).to_wire()
    kept = {name: value for name, value in (message.headers or {}).items() if not name.startswith("Nats-")}
    message.headers = {intern(name): intern(value) for name, value in kept.items()}
