"""Gauges read from elsewhere: what waits on the bus, and what was spent as the ledger has it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import asyncpg
import structlog
from nats import errors as nats_errors
from nats.js import errors as js_errors

from wayline.chassis import Bus
from wayline.chassis.topology import CONSUMERS, Limits, streams
from wayline.store import PostgresUnavailable, Store
from wayline.telemetry import metrics

log = structlog.get_logger()

SHARE_MAX = 0.05
"""The share of its time that reading the ledger may take: the pause grows with the ledger."""


class Gauges:
    """Reads them every so often."""

    def __init__(self, bus: Bus, store: Store, *, every_s: float) -> None:
        self._bus = bus
        self._store = store
        self._every_s = every_s
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._watch_queues(), name="queue gauges"),
            asyncio.create_task(self._watch_ledger(), name="ledger gauges"),
        ]

    async def stop(self, grace_s: float) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task

    async def _watch_queues(self) -> None:
        while True:
            try:
                await self.read_queues()
            except (nats_errors.Error, js_errors.Error, TimeoutError) as error:
                log.debug("the bus does not say what waits", why=str(error))
            await asyncio.sleep(self._every_s)

    async def _watch_ledger(self) -> None:
        while True:
            began = time.monotonic()
            try:
                await self.read_ledger()
            except (PostgresUnavailable, asyncpg.PostgresError, TimeoutError) as error:
                log.debug("the ledger cannot be read", why=str(error))
            await asyncio.sleep(max(self._every_s, (time.monotonic() - began) / SHARE_MAX))

    async def read_queues(self) -> None:
        """What waits for each consumer, and what each stream holds."""
        for consumer in CONSUMERS:
            info = await self._bus.js.consumer_info(consumer.stream, consumer.name)
            labels = (consumer.stream, consumer.name)
            metrics.queue_pending.labels(*labels).set(info.num_pending or 0)
            metrics.queue_ack_pending.labels(*labels).set(info.num_ack_pending or 0)
            metrics.queue_redelivered.labels(*labels).set(info.num_redelivered or 0)
        for stream in streams(Limits()):
            assert stream.name is not None
            state = (await self._bus.js.stream_info(stream.name)).state
            metrics.stream_messages.labels(stream.name).set(state.messages)
            metrics.stream_bytes.labels(stream.name).set(state.bytes)

    async def read_ledger(self) -> None:
        """What was spent by model and agent, and how many calls nobody knows the price of."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.spent)
        # No await between clearing and setting: a scrape never sees half of it.
        metrics.cost_usd.clear()
        metrics.calls_unpriced.clear()
        for row in rows:
            metrics.cost_usd.labels(row["model"], row["agent"]).set(row["cost_usd"])
            metrics.calls_unpriced.labels(row["model"], row["agent"]).set(row["unknown"])
