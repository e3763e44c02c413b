"""Finished spans leave as OTLP batches on the bus; a full buffer drops spans and counts them, it never blocks a job.

While few spans end they leave a moment after they have ended, so that a job's trace is whole soon after the job.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from wayline.telemetry import metrics
from wayline.telemetry.otlp import encode_spans
from wayline.telemetry.recent_events import RecentEvents

BUFFER_MAX = 8_192
BATCH_MAX = 512
FLUSH_S = 1.0
SOON_S = 0.01
FEW_PER_S = 20
"""Spans a second that leave soon: a message for each costs little then."""
FEW_AT_ONCE = 40

Send = Callable[[bytes], Awaitable[object]]


class BusExporter(SpanProcessor):
    """Collects finished spans and hands encoded batches to `send`, every second or every 512; soon while few end."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._finished: deque[ReadableSpan] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._send: Send | None = None
        self._stopping = False
        self._soon = False
        self._recent = RecentEvents(few_per_s=FEW_PER_S, few_at_once=FEW_AT_ONCE)

    def on_end(self, span: ReadableSpan) -> None:
        context = span.context
        if context is None or not context.trace_flags.sampled:
            return
        if len(self._finished) >= BUFFER_MAX:
            metrics.spans_dropped.labels(self._service, "buffer").inc()
            return
        self._finished.append(span)
        if len(self._finished) >= BATCH_MAX:
            self._wake.set()
        self._recent.add(1, now=time.monotonic())
        # After `stop` the loop may be closed.
        if self._recent.are_few and not self._soon and not self._stopping and self._task is not None:
            self._soon = True
            # Spans may end on any thread.
            loop = self._task.get_loop()
            loop.call_soon_threadsafe(loop.call_later, SOON_S, self._wake.set)

    def start(self, send: Send) -> None:
        """Begin to send, by `send`."""
        self._send = send
        self._task = asyncio.create_task(self._run(), name=f"{self._service} span export")

    async def stop(self) -> None:
        """Send what is left, then end."""
        # Woken and not cancelled: `asyncio.wait_for` in Python 3.11 can lose a cancellation, and a batch on its way
        # would be lost with one.
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait({self._task})
            await self.flush()

    async def _run(self) -> None:
        while not self._stopping:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), FLUSH_S)
            self._wake.clear()
            self._soon = False
            await self.flush()

    async def flush(self) -> None:
        """Send all finished spans."""
        while self._finished:
            batch = [self._finished.popleft() for _ in range(min(BATCH_MAX, len(self._finished)))]
            await self._hand_over(batch)

    async def _hand_over(self, batch: Sequence[ReadableSpan]) -> None:
        assert self._send is not None
        try:
            await self._send(encode_spans(batch))
        except Exception:
            # Spans may be lost under pressure, counted; whatever went wrong here must not reach a job.
            metrics.spans_dropped.labels(self._service, "send").inc(len(batch))
