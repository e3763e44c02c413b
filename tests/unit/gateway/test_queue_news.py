"""A job's place between its news: only while it waits for an executor, and at no cost to one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from wayline.contracts.events import Event, JobClaimed, JobResumed, SpanRef
from wayline.contracts.jobs import Delta, QueuePlace
from wayline.contracts.progress import Progress
from wayline.contracts.traces import FindQueuePlaces, QueuePlaces
from wayline.gateway.adapters import queue_places
from wayline.gateway.adapters.queue_places import QueueWatch
from wayline.gateway.queue_news import while_queued
from wayline.testkit import until

TRACE = SpanRef(trace_id="a" * 32, span_id="b" * 16)
AT = datetime(2026, 5, 1, tzinfo=UTC)
FIRST = JobResumed(job_id="j1", seq=1, at=AT, trace=TRACE)
CLAIMED = JobClaimed(job_id="j1", seq=2, at=AT, trace=TRACE, executor="x1", epoch=1, owner="1:1", attempt=1)
LATER = JobResumed(job_id="j1", seq=3, at=AT, trace=TRACE)
Item = Event | Delta | Progress | QueuePlace | None


def place(position: int) -> QueuePlace:
    return QueuePlace(job_id="j1", lane="interactive", position=position, queued=5)


class Watched:
    """A watch that notes its end."""

    ended = False

    def end(self) -> None:
        self.ended = True


async def test_a_place_that_comes_after_the_claim_is_not_told():
    watch = Watched()
    ended_at: list[bool] = []

    async def told() -> AsyncGenerator[Item, None]:
        for item in (FIRST, place(2), CLAIMED, place(1), None, LATER):
            ended_at.append(watch.ended)
            yield item

    heard = [item async for item in while_queued(told(), watch)]

    assert heard == [FIRST, place(2), CLAIMED, None, LATER]
    assert ended_at == [False, False, False, True, True, True]


class AskedBus:
    """A bus that counts what is asked."""

    def __init__(self) -> None:
        self.asked: list[FindQueuePlaces] = []
        self.position = 3

    async def ask(self, asked: FindQueuePlaces, replies: type[QueuePlaces]) -> QueuePlaces:
        self.asked.append(asked)
        return replies(places=(place(self.position),))


async def until_told(told: list[int], count: int) -> None:
    await until(lambda: len(told) >= count, why=f"{count} places were told")


async def test_followers_of_one_tenant_are_one_question(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(queue_places, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(queue_places, "BEGUN_WITHIN_S", 0.0)
    bus, told = AskedBus(), list[int]()
    queues = QueueWatch(bus)  # type: ignore[arg-type]

    def tell(at: QueuePlace) -> None:
        told.append(at.position)

    with ExitStack() as following:
        for job_id in ("j1", "j2", "j1"):
            following.enter_context(queues.watch("default", job_id).report_places(tell))
        await until_told(told, 2)
        bus.position = 2
        await until_told(told, 4)

    assert told == [3, 3, 2, 2]
    assert {asked.job_ids for asked in bus.asked} == {("j1", "j2")}


async def test_new_and_begun_jobs_are_not_asked_after(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(queue_places, "LOOK_EVERY_S", 0.0)
    bus = AskedBus()
    queues = QueueWatch(bus)  # type: ignore[arg-type]

    with queues.watch("default", "new").report_places(lambda _: None):
        begun = queues.watch("default", "begun")
        with begun.report_places(lambda _: None):
            begun.since -= 60
            begun.end()
            for _ in range(10):
                await asyncio.sleep(0)

    assert bus.asked == []
