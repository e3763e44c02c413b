"""Gauges read from elsewhere: what waits on the bus, what was spent as the ledger has it, how far standbys are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice

from wayline.chassis import Bus
from wayline.chassis.topology import BUCKETS, CONSUMERS, STREAMS, Consumer
from wayline.llm.labels import OWN_MAX, ModelLabels
from wayline.store import Record, Store
from wayline.telemetry import metrics
from wayline.telemetry.bounded_labels import OTHER, BoundedLabels


class Gauges:
    """Reads them; the ledger is the only truth about money, so its gauge survives any crash."""

    def __init__(self, bus: Bus, store: Store, *, labels_max: int) -> None:
        self._bus = bus
        self._store = store
        self._labels_max = labels_max
        self._label = ModelLabels(BoundedLabels(most=OWN_MAX))

    async def read_queues(self) -> None:
        """Read what waits for each consumer, and what each stream holds."""
        streams = [*(stream.name or "" for stream in STREAMS), *(bucket.stream for bucket in BUCKETS)]
        # Asked for at once: one after the other, seventy answers take long where each of them is slow.
        await asyncio.gather(*map(self._read_consumer, CONSUMERS), *map(self._read_stream, streams))

    async def _read_consumer(self, consumer: Consumer) -> None:
        info = await self._bus.js.consumer_info(consumer.stream, consumer.name)
        labels = (consumer.stream, consumer.name)
        metrics.queue_pending.labels(*labels).set(info.num_pending or 0)
        metrics.queue_ack_pending.labels(*labels).set(info.num_ack_pending or 0)
        metrics.queue_redelivered.labels(*labels).set(info.num_redelivered or 0)

    async def _read_stream(self, name: str) -> None:
        info = await self._bus.js.stream_info(name)
        metrics.stream_messages.labels(name).set(info.state.messages)
        metrics.stream_bytes.labels(name).set(info.state.bytes)
        bounds = ((info.state.bytes, info.config.max_bytes), (info.state.messages, info.config.max_msgs))
        metrics.stream_full.labels(name).set(max(held / most if most and most > 0 else 0.0 for held, most in bounds))

    async def read_approvals(self) -> None:
        """Read how many approvals the parked jobs of all tenants wait for."""
        async with self._store.system() as conn:
            metrics.approvals_waiting.set(await conn.fetchval(self._store.sql.approvals_waiting))

    async def read_standbys(self) -> None:
        """Read how far behind the standbys of Postgres are; none is seen where the schema's owner may not see them."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.standbys_behind)
        metrics.standbys.set(len(rows))
        metrics.standby_behind.clear()
        # The furthest last: of several that nobody gave a name it is the one that is shown.
        for row in reversed(rows):
            metrics.standby_behind.labels(row["standby"]).set(row["behind_bytes"])

    async def read_ledger(self) -> None:
        """Read what was spent, saved and left open by model and agent."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.spent)
        labels = self._labels(rows)
        # No await between clearing and setting: a scrape never sees half of it.
        for gauge, column in _LEDGER:
            gauge.clear()
            for pair, row in zip(labels, rows, strict=True):
                # Added: several models may share one label.
                gauge.labels(*pair).inc(row[column])

    def _labels(self, rows: Sequence[Record]) -> list[tuple[str, str]]:
        """Return model and agent of each row: those of most calls come first and stand, the others are `other`."""
        pairs = [(row["model"] if row["tool"] is not None else self._label(row["model"]), row["agent"]) for row in rows]
        shown = set(islice(dict.fromkeys(pairs), self._labels_max))
        return [pair if pair in shown else (OTHER, OTHER) for pair in pairs]


_LEDGER = (
    (metrics.cost_usd, "cost_usd"),
    (metrics.calls_unpriced, "unknown"),
    (metrics.calls_unsettled, "unsettled"),
    (metrics.cache_saved_usd, "saved_usd"),
    (metrics.cache_lost_usd, "lost_usd"),
    (metrics.ledger_input_tokens, "input_tokens"),
    (metrics.ledger_cache_read_tokens, "cache_read_tokens"),
)
