"""One stream of all jobs of a tenant: whole, in order and resumable, and of nobody else's jobs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta

import httpx2
import pytest

from wayline.chassis import Bus
from wayline.contracts.jobs import SubmitJob
from wayline.gateway.adapters import tenant_feeds
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.adapters.tenant_feeds import Listener, TenantFeeds, Told
from wayline.gateway.shapes.tenant_events import EventFilter, TenantEvent, shown_event
from wayline.journal import JobLog
from wayline.testkit import Platform, until

from ...bench.event_streams import tell as tell_all
from .conftest import Running, start_gateway
from .story import Story


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


Heard = tuple[str, str, dict]


async def listen(client: httpx2.AsyncClient, query: str = "", **headers: str) -> AsyncGenerator[Heard, None]:
    """Yield what a stream tells: place, type and data; of a heartbeat the place alone."""
    async with client.stream("GET", f"/v1/events{query}", headers=headers) as answer:
        assert answer.status_code == 200, (await answer.aread(), answer.status_code)
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line and not line.startswith(":"):
                fields[name] = value
            elif fields:
                yield fields.get("id", ""), fields.get("event", ""), json.loads(fields.get("data", "{}"))
                fields = {}


async def take(stream: AsyncGenerator[Heard, None], upto: int) -> list[Heard]:
    """Return the events of a stream, up to a number of them."""
    heard: list[Heard] = []
    async with asyncio.timeout(30), aclosing(stream):
        async for one in stream:
            heard += [one] if one[1] else []
            if len(heard) == upto:
                return heard
    raise AssertionError(f"the stream ended after {heard}")


async def tell(bus: Bus, job_id: str, *, user_id: str | None = None, tenant: str = "default") -> None:
    story = Story(bus, tenant, job_id)
    await story.begin(SubmitJob(tenant=tenant, job_id=job_id, agent="assistant", input="why?", user_id=user_id))
    await story.claim()
    await story.think()


async def places(bus: Bus, *job_ids: str) -> list[tuple[str, int]]:
    return [(job_id, event.seq) for job_id in job_ids async for event in JobLog(bus, "default", job_id).read()]


async def test_every_event_comes_once_and_a_client_resumes_anywhere(gateway: Running, bus: Bus):
    await tell(bus, "before")
    stream = listen(gateway.client)
    (start, began, _) = await anext(stream)
    await tell(bus, "other", tenant="globex")
    for job_id in ("a", "b"):
        await tell(bus, job_id)
    wanted = await places(bus, "a", "b")

    heard = await take(stream, len(wanted))
    resumed = [
        await take(listen(gateway.client, **{"Last-Event-ID": at}), len(wanted) - n)
        for n, at in enumerate([start, *(place for place, _, _ in heard)][: len(wanted)])
    ]
    types = await take(
        listen(gateway.client, "?types=model.*,job.claimed&agent=assistant", **{"Last-Event-ID": start}), 2
    )
    beyond = await anext(listen(gateway.client, "?agent=nobody", **{"Last-Event-ID": start}))

    assert not began and [(data["job_id"], data["seq"]) for _, _, data in heard] == wanted
    assert resumed == [heard[n:] for n in range(len(wanted))]
    assert {kind for _, kind, _ in types} <= {"job.claimed", "model.requested", "model.completed"}
    assert {data["agent"] for _, _, data in heard} == {"assistant"} and "sea" not in str(heard)
    assert beyond[1] == "" and int(beyond[0]) >= int(heard[-1][0].partition(".")[0])


async def test_a_key_of_one_user_hears_of_that_users_jobs_alone(gateway: Running, bus: Bus, platform: Platform):
    store = await platform.store("gateway")
    anns = bearer(await create_key(store, "default", "ann's", scopes=("read",), user_id="ann"))
    theirs = bearer(await create_key(store, "globex", "app", scopes=("read",)))
    stream, other = listen(gateway.client, **anns), listen(gateway.client, **theirs)
    await anext(stream)
    await anext(other)

    for job_id, user_id in (("bobs", "bob"), ("nobodys", None), ("anns", "ann")):
        await tell(bus, job_id, user_id=user_id)
    await tell(bus, "theirs", tenant="globex")
    heard, globex = await take(stream, 1), await take(other, 1)
    refused = await gateway.client.get("/v1/events?user_id=bob", headers=anns)
    wrong = await gateway.client.get("/v1/events?types=job.exploded", headers=anns)

    assert (heard[0][2]["job_id"], heard[0][2]["user_id"], globex[0][2]["job_id"]) == ("anns", "ann", "theirs")
    assert (refused.status_code, wrong.status_code) == (403, 422)


async def test_what_is_too_old_to_be_told_again_is_said(gateway: Running, bus: Bus, monkeypatch):
    stream = listen(gateway.client)
    await anext(stream)
    await tell(bus, "old")
    seen = await take(stream, 1)
    monkeypatch.setattr(tenant_feeds, "RESUMABLE", timedelta(0))

    resumed = listen(gateway.client, **{"Last-Event-ID": seen[0][0]})
    _, gap, told = await anext(resumed)
    await anext(resumed)
    await tell(bus, "new")
    after = await take(resumed, 1)

    assert (gap, told["after"], after[0][2]["job_id"]) == ("gap", seen[0][0], "new")


async def test_a_tenants_share_of_event_streams_is_its_own(platform: Platform):
    gateway = await start_gateway(platform, event_streams_per_tenant_max=1)
    store = await platform.store("gateway")
    ours = bearer(await create_key(store, "default", "app", scopes=("read",)))
    theirs = bearer(await create_key(store, "globex", "app", scopes=("read",)))
    first = listen(gateway.client, **ours)
    await anext(first)

    refused = await gateway.client.get("/v1/events", headers=ours)
    other = listen(gateway.client, **theirs)
    await anext(other)
    await first.aclose()
    await other.aclose()

    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")


def event(seq: int) -> Told:
    value = {"job_id": "j1", "seq": seq, "type": "job.claimed", "at": "2026-05-01T00:00:00Z"}
    return Told(shown_event(value, agent="a", user_id=None, session_id=None), b"x", seq)


def test_a_client_that_reads_too_slowly_is_cut_alone(monkeypatch):
    monkeypatch.setattr(tenant_feeds, "WAITING_MAX", 3)
    slow, quick = Listener(EventFilter()), Listener(EventFilter())

    for seq in range(1, 9):
        for listener in (slow, quick):
            listener.tell(event(seq))
        quick.waiting.clear()

    assert slow.is_cut and not slow.waiting and slow.news.is_set()
    assert not quick.is_cut


def test_an_event_tells_no_text_and_no_reference():
    value = {
        **{"job_id": "j1", "seq": 3, "type": "tool.completed", "at": "2026-05-01T00:00:00Z", "tool": "search"},
        **{"content": "secret words", "error": {"code": "timeout", "message": "secret words"}, "call": {"$claim": "x"}},
    }

    told = shown_event(value, agent="a", user_id="u", session_id="s")

    assert isinstance(told, TenantEvent) and (told.error, told.about) == ("timeout", {"tool": "search"})
    assert "secret" not in told.model_dump_json()


async def test_silent_followers_hold_up_nobody(gateway: Running, bus: Bus):
    jobs, rounds, readers, silent = 4, 3, 9, 3

    told = await tell_all(
        bus,
        gateway.url,
        jobs=jobs,
        job_clients=12,
        tenant_clients=readers + silent,
        silent=silent,
        rounds=rounds,
        pause_s=0,
    )

    assert (len(told.job_ms), len(told.tenant_ms)) == (2 * rounds * 12, 2 * rounds * jobs * readers)


async def test_a_new_client_hears_although_reading_broke_for_an_idle_one(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    feeds = TenantFeeds(bus, per_tenant_max=5)
    idle = feeds.follow("default", EventFilter(), last_id=None)
    await anext(idle)
    feed = feeds._feeds["default"]

    def broken(*_: object, **__: object) -> TenantEvent:
        raise KeyError("type")

    monkeypatch.setattr(tenant_feeds, "shown_event", broken)
    await tell(bus, "j1")
    await until(lambda: feed.is_over, why="reading breaks")
    monkeypatch.setattr(tenant_feeds, "shown_event", shown_event)

    fresh = feeds.follow("default", EventFilter(types="job.claimed"), last_id=None)
    await anext(fresh)
    await tell(bus, "j2")
    async with asyncio.timeout(10):
        heard = await anext(fresh)
    await fresh.aclose()
    told = [one async for one in idle]

    assert b'"job_id":"j2"' in heard
    assert told == [tenant_feeds.CUT] and feeds._feeds == {}
