"""A job's events over HTTP: every one once and in order, whoever comes late or is cut off."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2
import pytest

from wayline.chassis import Bus
from wayline.contracts.jobs import QueuePlace
from wayline.contracts.traces import FindQueuePlaces, QueuePlaces
from wayline.journal import JobLog
from wayline.telemetry import metrics
from wayline.testkit import Platform, until

from .conftest import Running, start_gateway
from .others import Others
from .story import Story

PLACE = QueuePlace(job_id="j1", lane="interactive", position=3, queued=5)


@dataclass(frozen=True)
class Heard:
    """One server-sent event."""

    id: str | None
    event: str | None
    data: dict


async def listen(
    client: httpx2.AsyncClient, job_id: str, *, after: str | None = None, query: str = ""
) -> AsyncGenerator[Heard, None]:
    """Follow a job as an EventSource does, once."""
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
    async with client.stream("GET", f"/v1/jobs/{job_id}/events{query}", headers=headers) as answer:
        assert answer.status_code in (200, 204)
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line and not line.startswith(":"):
                fields[name] = value
            elif fields:
                yield Heard(fields.get("id"), fields.get("event"), json.loads(fields["data"]))
                fields = {}


async def whole(bus: Bus, job_id: str) -> list[dict]:
    """The log as it is."""
    return [event.model_dump(mode="json") async for event in JobLog(bus, "default", job_id).read()]


async def test_a_late_client_gets_every_event_and_a_closed_stream(gateway: Running, bus: Bus):
    await Story(bus, "default", "j1").tell(steps=3)

    heard = [event async for event in listen(gateway.client, "j1")]

    assert [event.data for event in heard] == await whole(bus, "j1")
    assert [event.id for event in heard] == [str(n) for n in range(1, 11)]
    assert [event.event for event in heard] == [event.data["type"] for event in heard]


async def test_last_event_id_goes_on_exactly_there(gateway: Running, bus: Bus):
    await Story(bus, "default", "j1").tell(steps=3)

    heard = [event.id async for event in listen(gateway.client, "j1", after="7")]
    by_query = await gateway.client.get("/v1/jobs/j1/events?after=7", headers={"Accept": "application/json"})

    assert heard == ["8", "9", "10"]
    # What some clients send before they have seen any event.
    fresh = await gateway.client.get("/v1/jobs/j1/events", headers={"Last-Event-ID": ""})
    assert fresh.text.startswith("event: job.submitted")
    assert [event["seq"] for event in by_query.json()] == [8, 9, 10]


async def test_a_client_that_has_seen_the_end_gets_204(gateway: Running, bus: Bus):
    await Story(bus, "default", "j1").tell()

    for seen in ("6", "999"):
        answer = await gateway.client.get("/v1/jobs/j1/events", headers={"Last-Event-ID": seen})
        assert (answer.status_code, answer.content) == (204, b"")
        assert [event async for event in listen(gateway.client, "j1", after=seen)] == []


async def test_a_job_is_followed_from_before_its_log_exists(gateway: Running, bus: Bus):
    accepted = await gateway.client.post("/v1/jobs", json={"agent": "assistant", "input": "x", "job_id": "j1"})
    assert accepted.status_code == 202
    heard: list[Heard] = []

    async def follow() -> None:
        heard.extend([event async for event in listen(gateway.client, "j1")])

    following = asyncio.create_task(follow())
    await until(lambda: metrics.event_streams._value.get() >= 1, why="the client to follow")
    await Story(bus, "default", "j1").tell()
    await asyncio.wait_for(following, 30)

    assert [event.data for event in heard] == await whole(bus, "j1")


async def test_deltas_come_between_the_events_and_carry_no_id(gateway: Running, bus: Bus):
    story = Story(bus, "default", "j1")
    await story.begin()
    await story.claim()
    heard: list[Heard] = []

    async def follow() -> None:
        async for event in listen(gateway.client, "j1"):
            heard.append(event)

    following = asyncio.create_task(follow())
    await until(lambda: len(heard) == 3, why="the log so far")
    await story.say("The ")
    await until(lambda: len(heard) == 4, why="the delta")
    await story.think()
    await story.end()
    await asyncio.wait_for(following, 30)

    assert heard[3] == Heard(None, "delta", {"step": 0, "attempt": 1, "text": "The "})
    assert [event.data for event in heard if event.id] == await whole(bus, "j1")


@pytest.mark.slow
async def test_twenty_clients_cut_at_random_rebuild_the_same_list(gateway: Running, bus: Bus):
    story, luck = Story(bus, "default", "j1"), random.Random(7)
    await story.begin()

    async def stubborn(patience: list[int]) -> list[dict]:
        """Follow, be cut after so many events, come back with the last id."""
        seen: list[dict] = []
        last = None
        while True:
            cut = patience.pop() if patience else None
            count = 0
            async for event in listen(gateway.client, "j1", after=last):
                seen.append(event.data)
                last = event.id
                count += 1
                if count == cut:
                    break
            else:
                return seen

    clients = [
        asyncio.create_task(stubborn([luck.randint(1, 6) for _ in range(luck.randint(3, 8))])) for _ in range(20)
    ]
    await story.claim()
    for _ in range(40):
        await story.think()
        await asyncio.sleep(0)
    await story.end()
    lists = await asyncio.wait_for(asyncio.gather(*clients), 60)

    told = await whole(bus, "j1")
    assert len(told) == 84
    assert all(seen == told for seen in lists)
    await until(lambda: metrics.event_streams._value.get() == 0, why="no stream to be left behind")


async def test_the_same_events_as_a_json_list(gateway: Running, bus: Bus):
    await Story(bus, "default", "j1").tell(steps=2)
    await gateway.client.post("/v1/jobs", json={"agent": "assistant", "input": "x", "job_id": "j2"})

    told = await gateway.client.get("/v1/jobs/j1/events", headers={"Accept": "application/json"})
    empty = await gateway.client.get("/v1/jobs/j2/events", headers={"Accept": "application/json"})

    assert told.json() == await whole(bus, "j1")
    assert empty.json() == []


async def test_one_follower_too_many_is_asked_to_wait(platform: Platform, bus: Bus):
    gateway = await start_gateway(platform, streams_max=1)
    await Story(bus, "default", "j1").begin()
    first = listen(gateway.client, "j1")
    await anext(first)

    refused = await gateway.client.get("/v1/jobs/j1/events")

    assert (refused.status_code, refused.json()["code"]) == (503, "too_many_streams")
    await first.aclose()


async def test_a_gateway_that_stops_lets_its_followers_go_at_once(gateway: Running, bus: Bus):
    await Story(bus, "default", "j1").begin()
    heard: list[Heard] = []

    async def follow() -> None:
        async for event in listen(gateway.client, "j1"):
            heard.append(event)

    following = asyncio.create_task(follow())
    await until(lambda: len(heard) == 2, why="the log so far")
    await asyncio.wait_for(gateway.service.stop(600), 60)

    # Ended as a whole answer, not cut: the client comes back with Last-Event-ID to whoever listens next.
    await asyncio.wait_for(following, 30)


async def test_a_job_says_what_it_does_while_it_runs(gateway: Running, bus: Bus, others: Others):
    await others.answer(FindQueuePlaces, QueuePlaces(places=(PLACE,)))
    story, seen = Story(bus, "default", "j1"), list[tuple[Any, Any]]()

    for told in (story.begin, story.claim, story.think, partial(story.park, "d1")):
        await told()
        job = (await gateway.client.get("/v1/jobs/j1")).json()
        seen.append((job["progress"] and (job["progress"]["state"], job["progress"]["iteration"]), job["queue"]))

    assert seen == [
        (None, PLACE.model_dump()),
        (("analyzing", 0), None),
        (("generating_response", 1), None),
        (None, None),
    ]


async def test_a_queued_job_is_shown_where_its_place_is_not_known(gateway: Running, bus: Bus):
    await Story(bus, "default", "j1").begin()

    job = (await gateway.client.get("/v1/jobs/j1")).json()

    assert (job["status"], job["queue"]) == ("queued", None)


async def test_progress_comes_without_an_id_where_it_is_asked_for(gateway: Running, bus: Bus):
    await Story(bus, "default", "j1").tell(steps=3)
    plain = [event async for event in listen(gateway.client, "j1")]

    heard = [event async for event in listen(gateway.client, "j1", query="?progress=true")]
    later = [event async for event in listen(gateway.client, "j1", after="5", query="?progress=true")]

    assert [event for event in heard if event.event != "progress"] == plain
    progress = [event for event in heard if event.event == "progress"]
    assert {event.id for event in progress} == {None}
    assert (progress[0].data["state"], progress[0].data["phase"]) == ("analyzing", "started")
    assert progress[-1].data["phase"] == "completed" and heard[-1].event == "job.completed"
    assert later == heard[heard.index(plain[4]) + 1 :]
