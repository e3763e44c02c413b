"""What it is to hold a job: a ticket kept alive, an ear for signals, and the wish to stop when the job is not ours."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg

from wayline.chassis import Bus, Failpoint, stopped
from wayline.contracts.errors import Retry
from wayline.contracts.events import JobHandedBack
from wayline.contracts.jobs import Status
from wayline.executor.hold import signals
from wayline.executor.hold.claim import Ticket
from wayline.executor.hold.job_heartbeats import Heartbeats
from wayline.executor.hold.log_writer import ClaimLost, LogWriter
from wayline.executor.hold.ticket_end import Forgotten, GivenBack
from wayline.journal import Fenced, header_fields, last_record
from wayline.telemetry import metrics

log = structlog.get_logger()

T = TypeVar("T")


class Cancelled(Exception):
    """A cancel arrived while something was being done."""


class HandBack(Exception):
    """The process is being stopped: the job goes on elsewhere."""


class HeldJob:
    """One held job, the ticket it lives on, and the writer of its log."""

    def __init__(
        self,
        bus: Bus,
        ticket: Ticket,
        message: Msg,
        writer: LogWriter,
        *,
        draining: asyncio.Event,
        heartbeats: Heartbeats,
        meanings: signals.Meanings,
        begun: bool = True,
    ) -> None:
        self._bus = bus
        self.ticket = ticket
        self.message = message
        self.writer = writer
        waited = writer.job.life.waited
        self.waited = frozenset(waited.ends if waited is not None and waited.is_named_once else ())
        """What it had waited for when it was claimed, by ids that no later wait has."""
        self.steered: set[str] = set()
        """Later jobs that were told that their words are said."""
        self.begun = begun
        """It was under way when it was claimed, as far as its last record says, or has begun something since."""
        self.has_permit = False
        """This holder has asked whether it may run."""
        self.draining = draining
        self.fenced = False
        self._heartbeats = heartbeats
        self._meanings = meanings
        self._holder: asyncio.Task[Any] | None = None
        self._told = False
        self._late = False
        self._ear: asyncio.Future[None] | None = None
        self._seen_ours = writer.head.sequence
        """Up to which record of the log the last look knew the job to be ours."""
        self._subject = f"events.{ticket.tenant}.{ticket.job_id}"

    def adopt(self, message: Msg) -> None:
        """Take a redelivery of our ticket: beat with the new message, no new claim."""
        self.message = message

    @property
    def seconds_left(self) -> float:
        """Return what is left of the job's time."""
        deadline = self.writer.job.life.deadline
        assert deadline is not None
        return max(0.001, (deadline - datetime.now(UTC)).total_seconds())

    @property
    def is_over_share(self) -> bool:
        """Return whether its tenant stores so much more than its share that no job of it may go on."""
        return self._bus.stored.is_over(self.ticket.tenant)

    @property
    def told(self) -> bool:
        """Return whether there may be a new signal."""
        return self._told

    def tell(self) -> None:
        """Take the hint that there may be a new signal."""
        self._told = True
        self.wake()

    def wake(self, _: object = None) -> None:
        """Wake `listening`."""
        if self._ear is not None and not self._ear.done():
            self._ear.set_result(None)

    async def attend(self) -> None:
        """Look for signals that came before hints could reach us; a hint that comes meanwhile makes us look again."""
        if await signals.newest(self._bus, self.ticket.tenant, self.ticket.job_id) > self.writer.signals_seen:
            self.tell()

    async def hear(self) -> None:
        """Note what was signalled since we last looked. Only a hint makes us look; a park looks for itself."""
        if not self._told:
            return
        self._told = False
        upto = await signals.newest(self._bus, self.ticket.tenant, self.ticket.job_id)
        if upto > self.writer.signals_seen:
            tenant, job_id = self.ticket.tenant, self.ticket.job_id
            await signals.hear(self._bus, tenant, job_id, self.writer, upto, meanings=self._meanings)

    def start_beating(self, holder: asyncio.Task[Any]) -> None:
        """Keep the ticket ours from now on, for as long as `holder` works on the job."""
        self._holder = holder
        self._heartbeats.take(self)

    def stop_beating(self) -> None:
        self._holder = None
        self._heartbeats.release(self)

    async def keep(self) -> None:
        with suppress(nats_errors.Error):
            await self.message.in_progress()

    async def look(self) -> None:
        """Stop the holder when the job is not ours: a fenced one must not beat for ever.

        A job that has appended since the last look was ours then: only where it has not, its log is asked.
        """
        before, seen = self.writer.head.sequence, self._seen_ours
        self._seen_ours = before
        with suppress(Retry):
            last = await last_record(self._bus, self._subject) if before == seen else None
            signalled = await signals.newest(self._bus, self.ticket.tenant, self.ticket.job_id)
            if self._holder is None:
                return
            if (
                last is not None
                and last.sequence > before
                and header_fields(last.headers)["owner"] != self.ticket.owner
            ):
                metrics.jobs_fenced.labels("heartbeat").inc()
                log.info("fenced", job=self.ticket.job_id)
                self.fenced = True
                return await stopped(self._holder)
            # Hints travel on core NATS and may be lost: look for signals now and then all the same.
            if signalled > self.writer.signals_seen:
                self.tell()

    async def hand_back(self, why: str, *, delay_s: float = 0) -> GivenBack | Forgotten:
        """Write down what is known; the ticket is given back if the log's last record is still ours.

        That we lived to do so is written too: only a claim whose holder died may count against the job.
        """
        try:
            if await self.writer.certain():
                # After a park or the end only the ticket is left to give back.
                if self.writer.job.life.status is Status.RUNNING:
                    self.writer.note(JobHandedBack, reason=why)
                await self.writer.append(Failpoint.EXECUTOR_HAND_BACK_BEFORE, Failpoint.EXECUTOR_HAND_BACK_AFTER)
            last = await last_record(self._bus, self._subject)
        except (Fenced, ClaimLost, Retry):
            return Forgotten()
        is_ours = last is not None and last.sequence == self.writer.head.sequence
        return GivenBack(why, delay_s) if is_ours else Forgotten()

    async def listening(
        self,
        doing: Coroutine[Any, Any, T],
        *,
        finish_when_draining: bool = False,
        seconds: float | None = None,
        cancellable: bool = True,
    ) -> T:
        """Do something that takes long, and stop it early where that is wanted.

        It is stopped for a cancel unless it is not `cancellable`, after so many seconds, and for the process's end
        unless it may finish.

        Raises Cancelled, TimeoutError or HandBack; what was being done has then been stopped.
        """
        loop = asyncio.get_running_loop()
        task = loop.create_task(doing)
        task.add_done_callback(self.wake)
        # A timer of our own: `asyncio.timeout` costs as much as the task.
        self._late = False
        timer = None if seconds is None else loop.call_later(seconds, self._be_late)
        try:
            while not task.done():
                if self.draining.is_set() and not finish_when_draining:
                    raise HandBack
                if self._told:
                    await self._hear_or_later()
                # What ended while we heard of it is over, and paid for: its end is what counts.
                if task.done():
                    break
                if cancellable and self.writer.job.life.cancel is not None:
                    raise Cancelled
                if self._late:
                    raise TimeoutError
                await self._news()
            return task.result()
        finally:
            if timer is not None:
                timer.cancel()
            if not task.done():
                await stopped(task)
            # An error's traceback holds this frame, and the task the error.
            del task

    def _be_late(self) -> None:
        self._late = True
        self.wake()

    async def _hear_or_later(self) -> None:
        """Read the signals; where the bus is away, try again later: a call that is paid for goes on without."""
        try:
            await self.hear()
        except Retry as error:
            asyncio.get_running_loop().call_later(error.after_s, self.tell)

    async def _news(self) -> None:
        """Wait until `wake` is called: one future, where `asyncio.wait` needs a task each."""
        if self._told:
            return
        self._ear = asyncio.get_running_loop().create_future()
        try:
            await self._ear
        finally:
            self._ear = None
