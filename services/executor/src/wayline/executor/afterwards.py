"""What follows a job's last record here: the reply, the settlement, the wake-up, and only then the ack."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from decimal import Decimal

from nats import errors as nats_errors
from nats.aio.msg import Msg

from wayline.chassis import Bus, Failpoint, reach
from wayline.contracts import headers as h
from wayline.contracts.budgets import Settled, SettleJob
from wayline.contracts.errors import Retry
from wayline.contracts.jobs import Due, RunJob, Waiting, WakeLater
from wayline.executor.signals import newest
from wayline.journal import Head, Job, send_result


class Afterwards:
    """The steps between a record that ends or parks a job and the ack of its ticket; each may be repeated."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def ended(self, job: Job, message: Msg) -> None:
        """Tell whoever asked, settle what was reserved, then let the ticket go."""
        await send_result(self._bus, job)
        reach(Failpoint.EXECUTOR_REPLY_AFTER)
        settle = SettleJob(
            tenant=job.tenant,
            job_id=job.job_id,
            cost_usd=job.cost_usd,
            unsettled_usd=job.costs.unsettled_upper_usd or Decimal(0),
        )
        while True:
            try:
                await self._bus.ask(settle, Settled)
                break
            except Retry as error:
                # The router is away: the ticket stays ours, or another executor settles from the same record.
                await asyncio.sleep(error.after_s)
        reach(Failpoint.EXECUTOR_SETTLE_AFTER)
        await self._ack(message)

    async def schedule(self, job: Job, waiting: Waiting) -> None:
        """Have the server say when the wait is over; the same subject each time, so that a repeat replaces itself."""
        if waiting.expires_at is None:
            return
        address = {"tenant": job.tenant, "job_id": job.job_id, "wait_id": waiting.wait_id}
        due = Due(**address)
        at = waiting.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        later = WakeLater(**address)
        await self._bus.publish(
            later,
            msg_id=f"{job.tenant}/{job.job_id}:later:{waiting.wait_id}",
            headers={h.SCHEDULE: f"@at {at}", h.SCHEDULE_TARGET: due.subject, h.SCHEMA: due.schema_id()},
        )
        reach(Failpoint.EXECUTOR_SCHEDULE_AFTER)

    async def parked(self, tenant: str, job_id: str, head: Head, message: Msg) -> None:
        """Look for signals once more, queue a wake-up for one that came meanwhile, then let the ticket go.

        Whoever parked never goes on by itself: once parked, its own ticket is good for an ack only.
        """
        if await newest(self._bus, tenant, job_id) > head.signals_seen:
            wake = RunJob(tenant=tenant, lane=head.lane, job=job_id, at=head.sequence)
            await self._bus.publish(wake, msg_id=wake.msg_id)
        await self._ack(message)

    async def _ack(self, message: Msg) -> None:
        with suppress(nats_errors.Error):
            await message.ack()
        reach(Failpoint.EXECUTOR_ACK_AFTER)
