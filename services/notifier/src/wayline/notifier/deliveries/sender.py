"""Sends what is due: claims as much as it has room for, each delivery a task of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial

import structlog

from wayline.chassis import Failpoint, keep_trying, reach, stopped
from wayline.chassis.concurrency.periodic import PASSING
from wayline.chassis.concurrency.work_watch import LOOK_ANYWAY_S
from wayline.contracts.webhooks import Attempt
from wayline.notifier.deliveries.delivery_table import DeliveryTable
from wayline.notifier.deliveries.failing_webhooks import FailingWebhooks
from wayline.notifier.deliveries.retry_plan import DeliveryOutcome, after_attempt
from wayline.notifier.deliveries.send_request import RequestSender
from wayline.store import Record
from wayline.telemetry import metrics

log = structlog.get_logger()

PAUSE_MIN_S = 0.01


class Sender:
    """The loop that sends deliveries, beside those of other processes."""

    def __init__(
        self,
        table: DeliveryTable,
        request_sender: RequestSender,
        failing: FailingWebhooks,
        *,
        sending_max: int,
        poll_every_s: float,
        noted_within_s: float,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._table = table
        self._request_sender = request_sender
        self._failing = failing
        self._sending_max = sending_max
        self._poll_every_s = poll_every_s
        self._noted_within_s = noted_within_s
        self._chance = chance
        self._sending: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Look at once: something was added, or has ended."""
        self._wake.set()

    async def start(self) -> None:
        """Begin to send."""
        self._task = asyncio.create_task(self._run(), name="webhook deliveries")

    async def stop(self, grace_s: float) -> None:
        """Claim no more, and end the requests that run, within the grace. What is cut is sent again, later."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await stopped(self._task)
        if self._sending:
            _, late = await asyncio.wait(self._sending, timeout=grace_s)
            await stopped(*late)

    async def send_due(self) -> int:
        """Begin to send what is due, as far as there is room; return how many deliveries that is."""
        room = self._sending_max - len(self._sending)
        rows = await self._table.claim(at_most=room) if room > 0 else []
        if rows:
            reach(Failpoint.NOTIFIER_CLAIM_AFTER)
        for row in rows:
            task = asyncio.create_task(self._send(row))
            self._sending.add(task)
            task.add_done_callback(self._ended)
        return len(rows)

    async def settled(self) -> None:
        """Wait until what is being sent has ended."""
        while self._sending:
            await asyncio.wait(self._sending)

    async def deliver(self, row: Record) -> Attempt:
        """Send a delivery that is claimed, and note what came of it."""
        tried = await self._request_sender.send(row)
        reach(Failpoint.NOTIFIER_SEND_AFTER)
        number = row["attempts"] + 1
        outcome = after_attempt(
            tried.attempt,
            number=number,
            retried=row["retried"],
            chance=self._chance(),
            retry_after_s=tried.retry_after_s,
        )
        note = partial(self._note, row, tried.attempt, outcome)
        await keep_trying("webhook delivery", note, within_s=self._noted_within_s)
        reach(Failpoint.NOTIFIER_END_AFTER)
        return tried.attempt

    async def _note(self, row: Record, attempt: Attempt, outcome: DeliveryOutcome) -> None:
        is_final = not outcome.delivered and outcome.next_at is None
        if is_final and row["retried"]:
            # The letter comes first: a delivery is never given up without a word.
            await self._failing.give_up(row, outcome.reason)
        if not await self._table.end(row, attempt, outcome):
            return
        said = "delivered" if outcome.delivered else "given_up" if is_final else "retried"
        metrics.webhook_tries.labels(said).inc()
        if not outcome.delivered and row["retried"]:
            await self._failing.after_failure(row, is_gone=outcome.is_gone)

    async def _send(self, row: Record) -> None:
        try:
            await self.deliver(row)
        except PASSING as error:
            # Its claim ends, and it is sent again under the same id.
            log.warning("what came of a delivery is not noted", delivery=row["id"], why=str(error))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._wake.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a delivery ended with an error", error=repr(error), exc_info=error)

    async def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            pause_s = LOOK_ANYWAY_S
            try:
                # Most often nothing waits at all: then there is nothing to claim either.
                due = await self._table.next_due()
                # Nothing was claimed: the next one comes due, or its tenant's share is taken until one has ended.
                if due is not None and not await self.send_due():
                    pause_s = min(pause_s, max(PAUSE_MIN_S, self._until(due)))
            except PASSING as error:
                log.warning("deliveries are looked for later", why=str(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause_s)

    def _until(self, due: datetime) -> float:
        now = self._table.clock()
        # What is due and was not claimed waits for a share.
        return (due - now).total_seconds() if due > now else self._poll_every_s
