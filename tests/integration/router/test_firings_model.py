"""Each moment of a schedule becomes one job, however late its routers look, and wherever one of them is killed.

The plan stands in a real database. A router reads what is due at one step and decides about it at a later one, when the
others may have decided, or the schedule may have changed.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest

from wayline.contracts import ids
from wayline.contracts.jobs import SubmitJob
from wayline.router.schedules import firings as adapter
from wayline.router.schedules.firing_table import FiringTable
from wayline.router.schedules.firings import Firings
from wayline.store import Record
from wayline.testkit.walks import seeds

from .conftest import NOON, TENANT, Office

CONFIG = '{"cron": "0 * * * *", "job": {"agent": "assistant", "input": "go"}}'
HOUR = timedelta(hours=1)
ROUTERS, STEPS, POINTS_MAX = 3, 80, 4


class Killed(BaseException):
    """The router is gone."""


class Installation:
    """A schedule of every hour, the routers that look after it, and what they submitted."""

    def __init__(self, office: Office) -> None:
        self.store = office.store
        self.now = NOON
        self.seen: dict[int, list[Record]] = {}
        """By router, what it read and has not decided."""
        self.submitted: Counter[str] = Counter()
        self.version = 1
        """How often the schedule was saved."""
        self.checked: set[str] = set()
        """Jobs of firings that were looked at before."""
        self.points_left = 0
        self.firings = Firings(self, FiringTable(self.store), every_s=3_600, missed_max_s=1e9)  # type: ignore[arg-type]

    def reach(self, _: Any = None) -> None:
        """Die here, when it is time."""
        self.points_left -= 1
        if self.points_left == 0:
            raise Killed

    async def publish(self, job: SubmitJob, **_: Any) -> None:
        """Take a submission, as the bus does."""
        self.reach()
        assert job.job_id is not None
        self.submitted[job.job_id] += 1

    async def begin(self) -> None:
        await self.store.execute(
            TENANT,
            "INSERT INTO schedules (tenant, name, uid, config, next_at) VALUES ($1, 's', 'u', $2, $3)",
            *(TENANT, CONFIG, self.now),
        )

    async def look(self, router: int) -> None:
        """Read what is due now."""
        due = "SELECT *, $1::timestamptz AS moment FROM schedules WHERE next_at <= $1"
        self.seen[router] = await self.store.fetch(TENANT, due, self.now)

    async def decide(self, router: int, *, dies_at: int = 0) -> None:
        """Decide about what a router read; it may die, and another takes its place."""
        self.points_left = dies_at
        with suppress(Killed):
            for row in self.seen.pop(router, []):
                await self.firings.decide(row)

    async def submit_the_rest(self, *, dies_at: int = 0) -> None:
        """Submit what a router that died has left."""
        self.points_left = dies_at
        with suppress(Killed):
            for row in await self.store.fetch(TENANT, "SELECT * FROM firings WHERE submission IS NOT NULL"):
                await self.firings.submit(row)

    async def change(self) -> None:
        """Save the schedule again: what was read of it before decides nothing."""
        await self.store.execute(TENANT, "UPDATE schedules SET version = version + 1")
        self.version += 1

    async def check(self) -> datetime:
        """Check that every moment until the last decided one was fired or counted as missed, once; return the next."""
        rows = await self.store.fetch(TENANT, "SELECT * FROM firings ORDER BY due_at")
        expected = NOON
        for row in rows:
            assert row["due_at"] == expected + row["missed"] * HOUR, "a moment is fired twice, or lost"
            expected = row["due_at"] + HOUR
            moment = ids.firing_job(TENANT, "u", row["version"], row["due_at"].isoformat())
            assert row["job_id"] == moment, "another router would make another job of the same moment"
            if row["job_id"] not in self.checked:
                self.checked.add(row["job_id"])
                assert row["version"] == self.version, "decided by what was read before a change"
        assert set(self.submitted) <= {row["job_id"] for row in rows}
        assert await self.store.fetchval(TENANT, "SELECT next_at FROM schedules") == expected
        return expected


@pytest.mark.parametrize("seed", seeds(6))
async def test_each_moment_of_a_schedule_is_one_job(office: Office, monkeypatch: pytest.MonkeyPatch, seed: int):
    chance, place = random.Random(seed), Installation(office)
    monkeypatch.setattr(adapter, "reach", place.reach)
    await place.begin()

    for _ in range(STEPS):
        router, dies_at = chance.randrange(ROUTERS), chance.choice([0, chance.randint(1, POINTS_MAX)])
        match chance.choices(range(5), weights=[2, 4, 4, 1, 0.3])[0]:
            case 0:
                place.now += chance.choice([timedelta(minutes=20), HOUR, 5 * HOUR])
            case 1:
                await place.look(router)
            case 2:
                await place.decide(router, dies_at=dies_at)
            case 3:
                await place.submit_the_rest(dies_at=dies_at)
            case _:
                await place.change()
        await place.check()
    await place.look(0)
    await place.decide(0)
    await place.submit_the_rest()

    assert await place.check() > place.now
    fired = await office.store.fetch(TENANT, "SELECT job_id FROM firings")
    assert set(place.submitted) == {row["job_id"] for row in fired}
