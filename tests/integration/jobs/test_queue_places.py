"""A job that waits for an executor says over HTTP where it stands in its queue."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.client import Address, Client
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.jobs import Failure
from wayline.gateway.adapters import queue_places
from wayline.journal import JobLog
from wayline.testkit import Platform, until


async def follow(client: Client, job_id: str, heard: list[dict[str, Any]]) -> None:
    async for event in client.events(job_id, progress=True):
        heard.append(event)


def positions(heard: list[dict[str, Any]]) -> list[int]:
    return [event["position"] for event in heard if event["type"] == "queue"]


async def begin_and_fail(platform: Platform, job_id: str) -> None:
    """Do as an executor whose job fails at once."""
    log = JobLog(platform.bus, "default", job_id)
    head = await log.last()
    assert head is not None
    span = e.SpanRef(trace_id=ids.trace_id("default", job_id), span_id=ids.job_span("default", job_id))
    place = {"job_id": job_id, "at": datetime.now(UTC), "trace": span}
    claimed = e.JobClaimed(**place, seq=head.seq + 1, executor="x", epoch=1, owner="1:1", attempt=1)
    head = await log.append([claimed], head, owner="1:1", attempt=1, epoch=1)
    failed = e.JobFailed(**place, seq=head.seq + 1, error=Failure(code="out_of_luck", message="it failed"))
    await log.append([failed], head)


async def test_a_waiting_job_says_its_place_until_it_begins(platform: Platform, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(queue_places, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(queue_places, "BEGUN_WITHIN_S", 0.0)
    heard: list[dict[str, Any]] = []
    await platform.start("router", "tracing", "gateway")
    jobs = ["j0", "j1", "j2"]
    for job_id in jobs:
        await platform.submit(job_id)
        await platform.wait_until_empty("SUBMIT")
    async with Client(Address(f"http://127.0.0.1:{platform.http_port}")) as client:
        following = asyncio.create_task(follow(client, "j2", heard))
        for ahead, job_id in zip((3, 2, 1), jobs, strict=True):
            await until(lambda at=ahead: positions(heard)[-1:] == [at], why=f"j2 is number {ahead}")
            await begin_and_fail(platform, job_id)
        await asyncio.wait_for(following, 60)

    kinds = [event["type"] for event in heard]
    assert positions(heard) == [3, 2, 1]
    assert kinds[-1] == "job.failed"
    told = next(event for event in heard if event["type"] == "queue")
    assert (told["lane"], told["queued"], told["job_id"]) == ("interactive", 3, "j2")
