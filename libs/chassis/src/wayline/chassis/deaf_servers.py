"""Has a process leave a NATS server whose streams do not answer it, where the bus has other servers."""

from __future__ import annotations

import asyncio

import orjson
import structlog
from nats import errors as nats_errors

from wayline.chassis.concurrency.awaited_tasks import stopped
from wayline.chassis.connection.bus import AWAY, PROBE_TIMEOUT_S, Bus
from wayline.telemetry import metrics

log = structlog.get_logger()

LOOK_EVERY_S = 3.0
DEAF_AFTER_S = 10.0
"""How long nothing is stored before another server is tried: a new leader takes some seconds, wherever it is asked."""


class DeafServers:
    """Stores a word again and again, and goes to another server when that has failed for a while.

    A server that was cut off from the others keeps its connections and answers pings, but its streams have no leader:
    a process that stays with it hears and does nothing until that is over, though the others could serve it. Where no
    server can store anything, processes go from one to the next, which harms nothing.
    """

    def __init__(self, bus: Bus, *, look_every_s: float = LOOK_EVERY_S, deaf_after_s: float = DEAF_AFTER_S) -> None:
        self._bus = bus
        self._look_every_s = look_every_s
        self._deaf_after_s = deaf_after_s
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look, where there are several servers."""
        if self._bus.has_other_servers:
            self._task = asyncio.create_task(self._run(), name="deaf servers")

    async def stop(self, grace_s: float) -> None:
        """Look no more."""
        if self._task is not None:
            await stopped(self._task)

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        answered = clock()
        while True:
            await asyncio.sleep(self._look_every_s)
            if not self._bus.nc.is_connected or await self._stores():
                # One that is being connected to has its time from then on.
                answered = clock()
            elif clock() - answered >= self._deaf_after_s:
                log.warning("the streams do not answer, going to another server", service=self._bus.service)
                metrics.bus_errors.labels(self._bus.service, "deaf server").inc()
                await self._bus.nc.leave_server()
                answered = clock()

    async def _stores(self) -> bool:
        try:
            reply = await self._bus.request(f"probe.{self._bus.service}", b"", timeout_s=PROBE_TIMEOUT_S)
        except (*AWAY, nats_errors.Error, OSError):
            return False
        return "error" not in orjson.loads(reply.data)
