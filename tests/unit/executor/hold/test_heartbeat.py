"""Every job beats once a period; a thousand that are due together are looked at a few at a time."""

import asyncio

from wayline.executor.hold.job_heartbeats import LOOKS_MAX, Heartbeats
from wayline.testkit import until

PERIOD_S = 0.01


class Patient:
    def __init__(self) -> None:
        self.kept = 0
        self.looks = 0
        self.seen = asyncio.Event()
        self.away = asyncio.Event()
        self.away.set()

    async def keep(self) -> None:
        self.kept += 1

    async def look(self) -> None:
        await self.away.wait()
        self.looks += 1
        self.seen.set()


async def test_a_job_beats_again_and_again_until_it_is_released():
    heart = Heartbeats(PERIOD_S)
    job, witness = Patient(), Patient()
    heart.take(job)
    for _ in range(3):
        job.seen.clear()
        await asyncio.wait_for(job.seen.wait(), 5)

    heart.release(job)
    kept = job.kept
    heart.take(witness)
    for _ in range(2):
        witness.seen.clear()
        await asyncio.wait_for(witness.seen.wait(), 5)

    assert kept >= 3
    assert job.kept == kept


async def test_an_idle_heartbeat_beats_for_the_next_job():
    heart = Heartbeats(PERIOD_S)
    first, second = Patient(), Patient()
    heart.take(first)
    await asyncio.wait_for(first.seen.wait(), 5)
    heart.release(first)
    await asyncio.sleep(0)

    heart.take(second)

    await asyncio.wait_for(second.seen.wait(), 5)


async def test_all_tickets_are_kept_while_the_logs_cannot_be_read():
    heart = Heartbeats(PERIOD_S)
    jobs = [Patient() for _ in range(LOOKS_MAX * 3)]
    for job in jobs:
        job.away.clear()
        heart.take(job)
    last = Patient()
    heart.take(last)

    await until(lambda: last.kept >= 2, why="the last one in was kept twice")

    assert all(job.kept >= 2 for job in jobs)
    assert not any(job.looks for job in jobs)
    for job in jobs:
        job.away.set()
    await asyncio.wait_for(last.seen.wait(), 5)
    assert all(job.looks for job in jobs)
