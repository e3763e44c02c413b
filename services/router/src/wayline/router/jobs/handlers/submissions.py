"""Accepts submitted jobs: reserve, first record, ticket, ack."""

from __future__ import annotations

from datetime import UTC, datetime

import structlog

from wayline.chassis import Bus, Delivery
from wayline.contracts.base import Message
from wayline.contracts.errors import Conflict
from wayline.contracts.events import Event, JobSubmitted
from wayline.contracts.jobs import Failure, SubmitJob
from wayline.contracts.notices import JobNamedWebhook
from wayline.journal import Fenced, Head, JobLog, State, fold, run_result, send_result
from wayline.router.admission import first_events, read_submission
from wayline.router.forgetting.open_forgets import OpenForgets
from wayline.router.jobs.first_records import FirstRecords
from wayline.router.jobs.older_submissions import lies_before
from wayline.router.jobs.parked_signals import ParkedSignals
from wayline.router.jobs.result_table import ResultTable
from wayline.router.schedules.firings import Firings
from wayline.router.sessions.accepted_order import AcceptedOrder
from wayline.router.sessions.turns import Turns
from wayline.router.tenants.known_tenants import KnownTenants
from wayline.router.tenants.shares import TENANT_FULL, Shares
from wayline.router.ticket_lanes import TicketLanes

log = structlog.get_logger()

WARNED_MAX = 1_000
"""Tenants of which it is remembered that the operator was told."""


class SubmissionHandlers:
    """Answers what clients and schedules submit."""

    def __init__(
        self,
        bus: Bus,
        tenants: KnownTenants,
        records: FirstRecords,
        *,
        shares: Shares,
        open_forgets: OpenForgets,
        turns: Turns,
        ticket_lanes: TicketLanes,
        firings: Firings,
        latest: ResultTable,
        parked_signals: ParkedSignals,
        accepted_order: AcceptedOrder,
    ) -> None:
        self._accepted_order = accepted_order
        self._parked_signals = parked_signals
        self._open_forgets = open_forgets
        self._bus = bus
        self._tenants = tenants
        self._records = records
        self._shares = shares
        self._turns = turns
        self._ticket_lanes = ticket_lanes
        self._firings = firings
        self._latest = latest
        self._warned: set[str] = set()

    async def on_submit(self, job: SubmitJob, delivery: Delivery) -> list[Message]:
        """Give a job its log and its first ticket, once, however often it is submitted."""
        with self._accepted_order.handling(job, delivery):
            return await self._submitted(job, delivery)

    async def _submitted(self, job: SubmitJob, delivery: Delivery) -> list[Message]:
        await self._tenants.require_enabled(job.tenant)
        job_id = read_submission.job_id_of(job.job_id, delivery)
        self._warn_of_bare_id(job, delivery)
        read_submission.reply_to_of(job.tenant, delivery)
        read_submission.require_text(job)
        await self._open_forgets.require_not_forgetting(job.tenant, job.user_id, sequence=delivery.sequence)
        job_log = JobLog(self._bus, job.tenant, job_id)
        # A message that comes for the first time is nearly always of a new job, and where it is not the append says so.
        head, content_hash = await job_log.last() if delivery.deliveries > 1 else None, job.content_hash()
        if head is None:
            await self._tell_of_webhook(job, job_id)
            head = await self._records.begin(job_log, job, job_id, delivery, content_hash=content_hash)
        if head.content_hash != content_hash:
            raise Conflict(f"job {job_id!r} is already another job", code="job_id_conflict")
        self._accepted_order.taken(job.tenant, [delivery.sequence])
        messages: list[Message] = []
        if head.state is State.NEW:
            messages.append(await self._ticket_lanes.queue_first(job.tenant, job_id, head))
        if job.options.when_busy == "steer" and job.session_id is not None:
            await self._turns.steer(job.tenant, job.session_id)
        if head.state is State.ENDED and head.epoch == 0:
            await self._records.conclude(job_log, [event async for event in job_log.read()])
        elif head.state is State.PARKED and head.epoch == 0:
            await self._queue_for_turn(job, job_id)
            # A signal that came before the record found no log: the process that parks a job looks for them afterwards.
            wake = await self._parked_signals.ticket(job.tenant, job_id, head)
            if wake is not None:
                messages.append(wake)
        return messages

    async def _tell_of_webhook(self, job: SubmitJob, job_id: str) -> None:
        """Tell the notifier of a job with a webhook of its own, before there is a record that it could pass over."""
        webhook = job.options.webhook
        if webhook is not None and webhook.url is not None:
            notice = JobNamedWebhook(tenant=job.tenant, job_id=job_id)
            await self._bus.publish(notice, msg_id=notice.msg_id)

    def _warn_of_bare_id(self, job: SubmitJob, delivery: Delivery) -> None:
        """Tell the operator once of each tenant whose sender may lose jobs: the message that is lost is never seen."""
        if job.tenant in self._warned or not read_submission.may_hide_others(job.job_id, delivery):
            return
        if len(self._warned) < WARNED_MAX:
            self._warned.add(job.tenant)
        fix = f"name the job in `job_id`, or begin the header with {job.tenant}/"
        log.warning("a job is named by Nats-Msg-Id alone, which all tenants share", tenant=job.tenant, fix=fix)

    async def _queue_for_turn(self, job: SubmitJob, job_id: str) -> None:
        """Do what follows the first record of a job that waits for its turn: the jobs before it may have ended by now.

        Each part may be repeated.
        """
        if job.session_id is None:
            return
        if job.options.when_busy == "interrupt" and (turn := await self._turns.turn_of(job.tenant, job_id)):
            await self._turns.interrupt(job.tenant, job.session_id, turn, by=job_id)
        await self._turns.wake_next(job.tenant, job.session_id)

    async def on_refused(self, delivery: Delivery, code: str, reason: str) -> None:
        """Write the log of a job that will not run, release what was reserved for it, and tell its sender.

        A submission that gets no log is answered all the same, where it has a reply subject: what is no object, and
        what names the job of an older submission that is still there.
        """
        found = read_submission.read_partial(delivery)
        tenant = found.job.tenant
        if found.has_log and await lies_before(self._bus, tenant, found.job_id, before=delivery.sequence):
            first = first_events.submitted(found.job, found.job_id, delivery, datetime.now(UTC))
            await send_result(self._bus, fold(first_events.refused(first, Failure(code=code, message=reason))))
            self._accepted_order.taken(tenant, [delivery.sequence])
            return
        await self._refuse(found, delivery, code, reason)
        if found.has_log:
            # A later one of its session may have taken its turn for it, and waits for its end.
            self._accepted_order.taken(found.job.tenant, [delivery.sequence])
            if not await self._has_own_turn(found.job.tenant, found.job_id):
                await self._turns.end(found.job.tenant, found.job_id, ran=False)

    async def _has_own_turn(self, tenant: str, job_id: str) -> bool:
        """Return whether another submission of this id is a job at work in its session: its turn ends with it."""
        log = JobLog(self._bus, tenant, job_id)
        head = await log.last()
        if head is None or head.state is State.ENDED:
            return False
        submitted = next(event for event in await log.first() if isinstance(event, JobSubmitted))
        return submitted.job.session_id is not None

    async def _refuse(
        self, found: read_submission.PartialSubmission, delivery: Delivery, code: str, reason: str
    ) -> None:
        job = found.job
        turn = None
        if found.has_log and job.session_id is not None:
            turn = await self._turns.turn_of(job.tenant, found.job_id)
        await self._firings.note_refused(job.tenant, found.job_id, delivery, f"{code}: {reason}")
        schedule = await self._firings.fired_by(job.tenant, found.job_id, delivery)
        first = first_events.submitted(job, found.job_id, delivery, datetime.now(UTC), turn=turn, schedule=schedule)
        record = first_events.refused(first, Failure(code=code, message=reason))
        if code == TENANT_FULL:
            record = first_events.refused(first_events.without_input(first), Failure(code=code, message=reason))
        known = found.has_log and await self._tenants.is_tenant(job.tenant)
        if not known or not await self._shares.may_store(job.tenant):
            job_ended = fold(record)
            await send_result(self._bus, job_ended)
            await self._latest.end(job.tenant, run_result(job_ended))
            return
        await self._tell_of_webhook(job, found.job_id)
        await self._conclude_refused(JobLog(self._bus, job.tenant, found.job_id), first, record)

    async def _conclude_refused(self, job_log: JobLog, first: JobSubmitted, record: list[Event]) -> None:
        """Write the log of a refused job, and do what follows its end.

        A job that exists is another: a conflicting or broken second submission changes nothing about it, unless its log
        is our own refusal, whose last steps may be missing.
        """
        try:
            await job_log.begin(record, content_hash=first.content_hash, lane=first.job.options.lane)
        except Fenced:
            head = await job_log.last()
            if head is not None and head.content_hash != first.content_hash:
                return await send_result(self._bus, fold(record))
            found = await self._own_refusal(job_log, head)
            if found is None:
                return
            record = found
        await self._records.conclude_refused(job_log, first, record)

    @staticmethod
    async def _own_refusal(job_log: JobLog, head: Head | None) -> list[Event] | None:
        """Return the events of a log that is a refusal of this router; None: it is none."""
        if head is None or head.state is not State.ENDED:
            return None
        events = [event async for event in job_log.read()]
        return events if len(events) == 2 and isinstance(events[0], JobSubmitted) else None
