"""The ends of waits, as schedules that the bus keeps: made before a job parks, withdrawn once they mean nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import ceil
from typing import Any

import orjson
import structlog
from nats import errors as nats_errors

from wayline.chassis import Bus, Failpoint, reach
from wayline.chassis.topology import LATER_ROUTER
from wayline.contracts import headers as h
from wayline.contracts.errors import Full
from wayline.contracts.jobs import Due, WakeLater
from wayline.journal import Job

log = structlog.get_logger()

STREAM = LATER_ROUTER.stream
FULL_AT = 0.9
"""Of its bytes, from where on nothing is scheduled: when the stream is full it drops its oldest, which may be the end
of a wait that nobody else would end."""
ROOM_FRESH_S = 5.0
"""How long its size is believed: what all executors schedule meanwhile fits in what is left of it."""
ASK_WITHIN_S = 2.0


class WaitEnds:
    """Schedules in the stream LATER. One subject a wait, so that a repeat replaces itself."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._looked_at = float("-inf")
        self._is_full = False

    async def schedule(self, job: Job, waits: Mapping[str, datetime]) -> None:
        """Have the server say when each wait is over. Raises Full where the stream has no room for it."""
        if waits and await self._has_no_room():
            raise Full(f"the stream {STREAM}, which ends waits,")
        for wait_id, expires_at in waits.items():
            address = {"tenant": job.tenant, "job_id": job.job_id, "wait_id": wait_id}
            due = Due(**address)
            # In whole seconds, and never before its time.
            at = datetime.fromtimestamp(ceil(expires_at.timestamp()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            await self._bus.publish(
                WakeLater(**address),
                msg_id=f"{job.tenant}/{job.job_id}:later:{wait_id}",
                headers={h.SCHEDULE: f"@at {at}", h.SCHEDULE_TARGET: due.subject, h.SCHEMA: due.schema_id()},
            )
            reach(Failpoint.EXECUTOR_SCHEDULE_AFTER)

    async def withdraw(self, job: Job, wait_ids: Iterable[str]) -> None:
        """Forget the ends of waits that are over and never begin again."""
        for wait_id in wait_ids:
            await self._purge(WakeLater(tenant=job.tenant, job_id=job.job_id, wait_id=wait_id).subject)

    async def withdraw_all(self, job: Job) -> None:
        """Forget the ends of all waits of a job that has ended, those that have come as well."""
        for kind in (WakeLater, Due):
            await self._purge(kind(tenant=job.tenant, job_id=job.job_id, wait_id="*").subject)

    async def _purge(self, subject: str) -> None:
        """Forget what is stored on a subject; what is left because the bus is away means nothing when it comes."""
        await self._ask(f"$JS.API.STREAM.PURGE.{STREAM}", orjson.dumps({"filter": subject}))

    async def _has_no_room(self) -> bool:
        if time.monotonic() - self._looked_at > ROOM_FRESH_S:
            info = await self._ask(f"$JS.API.STREAM.INFO.{STREAM}", b"")
            most = info.get("config", {}).get("max_bytes", -1)
            self._is_full = most > 0 and info["state"]["bytes"] >= most * FULL_AT
            self._looked_at = time.monotonic()
        return self._is_full

    async def _ask(self, subject: str, body: bytes) -> dict[str, Any]:
        """Return the answer of the stream's server; empty: there is none, or this identity may not ask."""
        if self._bus.denied and subject.lower() in self._bus.denied:
            return {}
        try:
            return orjson.loads((await self._bus.request(subject, body, timeout_s=ASK_WITHIN_S)).data)
        except (TimeoutError, nats_errors.Error) as error:
            log.warning("no answer about the ends of waits", subject=subject, error=str(error) or repr(error))
            return {}
