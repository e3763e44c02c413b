"""Spans leave a service soon while few end, and together while many do."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.sdk.trace import TracerProvider

from wayline.telemetry import BusExporter, export
from wayline.telemetry.recent_events import RecentEvents


async def test_a_single_span_leaves_without_waiting_for_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(export, "FLUSH_S", 3_600)
    sent = asyncio.Event()

    async def send(_: bytes) -> None:
        sent.set()

    exporter = BusExporter("test")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(exporter)
    exporter.start(send)
    with provider.get_tracer("test").start_as_current_span("work"):
        pass

    await asyncio.wait_for(sent.wait(), 30)
    await exporter.stop()


def test_a_span_that_ends_after_the_loop_harms_nobody():
    exporter = BusExporter("test")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(exporter)

    async def send(_: bytes) -> None: ...

    async def run() -> None:
        exporter.start(send)
        await exporter.stop()

    asyncio.run(run())
    provider.get_tracer("test").start_span("late").end()


@pytest.mark.parametrize(("events_per_s", "few"), [(1, True), (39, True), (60, False)])
def test_a_steady_stream_above_the_rate_is_many(events_per_s: int, few: bool):
    recent = RecentEvents(few_per_s=40, few_at_once=80)

    for second in range(20):
        recent.add(events_per_s, now=float(second))

    assert recent.are_few is few


def test_a_burst_after_a_pause_is_few():
    recent = RecentEvents(few_per_s=40, few_at_once=80)
    recent.add(10_000, now=0.0)
    assert not recent.are_few

    recent.add(80, now=1_000.0)

    assert recent.are_few
