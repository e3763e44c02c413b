"""Sends spans on to a collector from a thread; when it is slow or away spans are dropped and counted, nothing waits."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler

from wayline.telemetry import metrics
from wayline.tracing.adapters.dialects import Dialect
from wayline.tracing.adapters.readable_spans import from_otlp, from_rows
from wayline.tracing.rows import SpanRow

log = structlog.get_logger()

WAITING_MAX = 32_768
"""Spans that wait to be sent."""
EXPORT_MAX = 512
"""Spans of one request, as with the SDK's own batches."""


class SpanBatch(NamedTuple):
    """Spans that were taken together; they are read in the thread that sends them."""

    read: Callable[[], list[ReadableSpan]]
    spans: int


class Collector:
    """A bounded queue and a thread in front of one of OpenTelemetry's exporters."""

    def __init__(
        self,
        make_exporter: Callable[[], SpanExporter],
        sampler: Sampler = ALWAYS_ON,
        *,
        dialects: tuple[Dialect, ...] = (),
    ) -> None:
        self._make_exporter = make_exporter
        self._dialects = dialects
        self._sampler = sampler
        self._exporter: SpanExporter | None = None
        self._queue: deque[SpanBatch] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._closing = False
        # A request that hangs must not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name="otlp forwarding", daemon=True)

    async def start(self) -> None:
        """Make the exporter, which imports its libraries and reads the variables, and begin. Raises WrongSetting."""
        self._exporter = await asyncio.to_thread(self._make_exporter)
        self._thread.start()

    async def stop(self, grace_s: float) -> None:
        """Do nothing yet: what the other parts finish now is still to be sent."""

    async def close(self, grace_s: float = 5.0) -> None:
        """Send what waits within the grace, and end; what is left then is dropped."""
        if self._exporter is None:
            return
        with self._changed:
            self._closing = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join, grace_s)
        with self._changed:
            left = self._take(self._waiting)
        _drop("forward", sum(batch.spans for batch in left))
        # Ends the pauses between its tries, but not a request that is under way.
        await asyncio.to_thread(self._exporter.shutdown)

    def forward(self, body: bytes, spans: int) -> None:
        """Take a service's OTLP batch for sending; never waits."""
        self._put(SpanBatch(partial(from_otlp, body), spans))

    def forward_rows(self, rows: Sequence[SpanRow]) -> None:
        """Take spans that were made from the log for sending, those that the sampler takes; never waits."""
        self._put(SpanBatch(partial(from_rows, rows, self._sampler, self._dialects), len(rows)))

    def _put(self, batch: SpanBatch) -> None:
        with self._changed:
            if self._waiting + batch.spans <= WAITING_MAX:
                self._queue.append(batch)
                self._waiting += batch.spans
                self._changed.notify()
                return
        _drop("forward queue", batch.spans)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                batches = self._take(EXPORT_MAX)
            if not batches:
                return
            self._send(batches)

    def _take(self, spans: int) -> list[SpanBatch]:
        """Take batches of about so many spans from the queue, one at least; the lock is held."""
        taken: list[SpanBatch] = []
        count = 0
        while self._queue and (not taken or count + self._queue[0].spans <= spans):
            taken.append(self._queue.popleft())
            count += taken[-1].spans
        self._waiting -= count
        return taken

    def _send(self, batches: Sequence[SpanBatch]) -> None:
        unsent = sum(batch.spans for batch in batches)
        try:
            spans = [span for batch in batches for span in batch.read()]
            unsent = len(spans)
            for at in range(0, len(spans), EXPORT_MAX):
                part = spans[at : at + EXPORT_MAX]
                if self._export(part):
                    unsent -= len(part)
        except Exception:
            # This thread is the only one: what one batch brings must not end the forwarding of all others.
            log.exception("spans were not forwarded", spans=unsent)
        _drop("forward", unsent)

    def _export(self, spans: Sequence[ReadableSpan]) -> bool:
        assert self._exporter is not None
        # The exporter tries again by itself within its timeout, and logs why it gave up.
        return self._exporter.export(spans) is SpanExportResult.SUCCESS


def _drop(where: str, spans: int) -> None:
    if spans:
        metrics.spans_dropped.labels("tracing", where).inc(spans)
