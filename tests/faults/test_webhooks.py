"""The notifier killed at each of its failpoints and at random: no delivery is lost, and none is made twice."""

from __future__ import annotations

import asyncio
import random
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

import orjson
import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts.errors import Retry
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.webhooks import PutWebhook, SavedWebhook, WebhookConfig
from wayline.journal import JobLog
from wayline.simulator.website import Page, Website
from wayline.testkit import until

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import FaultPlatform

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

QUICK = {Failpoint.NOTIFIER_SEND_AFTER}
"""What `make test` runs of them."""
POINTS = [point for point in Failpoint if point.startswith("notifier.")]
KILLS = 50
JOBS_PER_KILL = 8
WITHIN_S = 120.0
NUMBERS = count(1)


@dataclass
class Told:
    """A tenant with a webhook, and the jobs of which it has to hear."""

    platform: FaultPlatform
    website: Website
    tenant: str
    path: str

    async def put(self) -> None:
        config = WebhookConfig(url=self.website.url(self.path), events=("job.completed",))
        request = PutWebhook(tenant=self.tenant, name="crm", config=config)

        async def put() -> bool:
            with suppress(Retry):
                await self.platform.bus.ask(request, SavedWebhook)
                return True
            return False

        await until(put, within=WITHIN_S, why="the webhook is saved")

    async def complete(self, *job_ids: str) -> None:
        for job_id in job_ids:
            log = JobLog(self.platform.bus, self.tenant, job_id)
            job = SubmitJob(agent="assistant", input="go", job_id=job_id)
            submitted = e.JobSubmitted(**_told(job_id, 1), tenant=self.tenant, job=job, content_hash="h")
            head = await log.begin([submitted], content_hash="h", lane="interactive")
            await log.append([e.JobCompleted(**_told(job_id, 2), answer="42")], head)

    @property
    def ids(self) -> dict[str, set[str]]:
        """Return the ids under which each job came."""
        found: dict[str, set[str]] = {}
        for one in self.website.seen:
            if one.path == self.path:
                job_id = orjson.loads(one.body)["data"]["job_id"]
                found.setdefault(job_id, set()).add(one.headers["webhook-id"])
        return found

    async def check(self, *job_ids: str) -> None:
        """Wait until each job was told and is noted as delivered, and see that each has one id."""

        async def delivered() -> bool:
            rows = await self.platform.sql(
                "SELECT state, job_id FROM notifier.deliveries WHERE tenant = $1", self.tenant
            )
            return sorted(row["job_id"] for row in rows if row["state"] == "delivered") == sorted(job_ids)

        await until(delivered, within=WITHIN_S, why="every delivery is noted")
        found = self.ids
        assert sorted(found) == sorted(job_ids)
        assert all(len(ids) == 1 for ids in found.values())
        assert len(set().union(*found.values())) == len(job_ids)
        assert await self.platform.dead_letters() == []


def _told(job_id: str, seq: int) -> dict[str, Any]:
    trace = e.SpanRef(trace_id="a" * 32, span_id="b" * 16)
    return {"job_id": job_id, "seq": seq, "at": datetime.now(UTC), "trace": trace}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def website() -> AsyncIterator[Website]:
    async with Website() as website:
        yield website


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform("notifier")
    platform.fleet.set(
        "notifier",
        WAYLINE_NOTIFIER_KEYS=f"k1:{b64encode(bytes(32)).decode()}",
        WAYLINE_NOTIFIER_ALLOWED_HOSTS=["127.0.0.1:*"],
        WAYLINE_NOTIFIER_TIMEOUT_S=2,
        WAYLINE_NOTIFIER_CLAIM_MARGIN_S=1,
        WAYLINE_NOTIFIER_LINGER_MS=5,
        WAYLINE_NOTIFIER_POLL_EVERY_S=0.2,
    )
    return platform


def tells(platform: FaultPlatform, website: Website) -> Told:
    number = next(NUMBERS)
    website.pages[f"/{number}"] = Page("thanks")
    return Told(platform, website, f"tenant-{number}", f"/{number}")


@pytest.mark.parametrize(("point", "nth"), kill_points(((point, nth) for point in POINTS for nth in (1, 2)), QUICK))
async def test_a_notifier_killed_there_loses_and_doubles_no_delivery(
    platform: FaultPlatform, website: Website, point: Failpoint, nth: int
):
    told, jobs = tells(platform, website), [f"j{number}" for number in range(4)]
    await platform.fleet.stop("notifier")
    await platform.fleet.start("notifier")
    await told.put()
    await platform.fleet.stop("notifier")
    doomed = await platform.fleet.start("notifier", point, nth=nth)
    for job_id in jobs:
        # One after the other: each is a batch of its own.
        await told.complete(job_id)
        await until(lambda job_id=job_id: job_id in told.ids or doomed.exited, why="it is told, or the notifier dead")
    await doomed.ended()
    assert doomed.killed
    await platform.fleet.start("notifier")

    await told.check(*jobs)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_notifier_killed_fifty_times_loses_and_doubles_no_delivery(platform: FaultPlatform, website: Website):
    told, chance, jobs = tells(platform, website), random.Random(29), []
    await platform.fleet.stop("notifier")
    running = await platform.fleet.start("notifier")
    await told.put()
    for kill in range(KILLS):
        made = [f"k{kill}-{number}" for number in range(JOBS_PER_KILL)]
        jobs += made
        await told.complete(*made)
        await asyncio.sleep(chance.random() * 0.5)
        running.kill()
        running = await platform.fleet.start("notifier")

    await told.check(*jobs)
