"""The client keeps a job's story whole over broken connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import get_args

import pytest

from wayline.client import Address, ApiError, Client, NotReachable, NotWayline
from wayline.client import client as module
from wayline.client.park_reasons import PARK_REASONS, in_words
from wayline.contracts.jobs import Waiting


def sse(seq: int, kind: str, **fields: object) -> bytes:
    event = {"seq": seq, "type": kind, **fields}
    return f"id: {seq}\nevent: {kind}\ndata: {json.dumps(event)}\n\n".encode()


def parks(seq: int, why: str = "budget") -> bytes:
    return sse(seq, "job.parked", waiting={"why": why})


STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: 100000\r\n\r\n"
DELTA = b'event: delta\ndata: {"step": 1, "attempt": 1, "text": "so far"}\n\n'


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve the next answer to each connection and close it; yields its URL and the requests so far."""
    requests: list[str] = []
    left = list(answers)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(left.pop(0))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests


async def test_a_stream_with_nothing_to_come_ends():
    nothing = b"HTTP/1.1 204 No Content\r\ncontent-type: text/event-stream\r\n\r\n"

    async with answering(nothing) as (url, requests), Client(Address(url)) as client:
        events = [event async for event in client.events("j1", after=4)]

    assert (events, len(requests)) == ([], 1)


async def test_a_cut_stream_resumes_after_its_last_event(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "RECONNECT_AFTER_S", 0)
    cut = STREAM + sse(1, "job.submitted") + sse(2, "job.routed") + DELTA + b"id: 3\nevent: job.cl"
    rest = STREAM + sse(3, "job.claimed") + sse(4, "job.completed")

    async with answering(cut, rest) as (url, requests), Client(Address(url, "wl_key")) as client:
        events = [event async for event in client.events("j1")]

    assert [event.get("seq") for event in events] == [1, 2, None, 3, 4]
    assert "last-event-id: 0" in requests[0] and "last-event-id: 2" in requests[1]
    assert all("authorization: bearer wl_key" in request for request in requests)


async def test_a_gateway_that_stays_away_is_not_reachable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "RECONNECT_AFTER_S", 0)

    async with Client(Address("http://127.0.0.1:9")) as client:
        with pytest.raises(NotReachable, match="start Wayline with `wayline up`"):
            async for _ in client.events("j1"):
                pass


async def test_a_refusal_carries_the_gateways_problem():
    body = b'{"code": "not_found", "title": "not found", "detail": "no job \'j1\'", "status": 404}'
    answer = b"HTTP/1.1 404 Not Found\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body

    async with answering(answer, answer) as (url, _), Client(Address(url)) as client:
        with pytest.raises(ApiError, match=r"^no job 'j1'$") as refused:
            await client.get("/v1/jobs/j1")
        with pytest.raises(ApiError, match=r"^no job 'j1'$"):
            async for _ in client.events("j1"):
                pass

    assert (refused.value.code, refused.value.status) == ("not_found", 404)


@pytest.mark.parametrize("status", ["502 Bad Gateway", "307 Temporary Redirect\r\nlocation: /elsewhere", "200 OK"])
async def test_another_server_is_not_taken_for_wayline(status: str):
    answer = f"HTTP/1.1 {status}\r\ncontent-length: 4\r\nconnection: close\r\n\r\noops".encode()

    async with answering(answer) as (url, _), Client(Address(url)) as client:
        with pytest.raises(NotWayline, match=rf"answered {status[:3]}, not as Wayline does: is WAYLINE_URL right\?"):
            await client.get("/v1/jobs")


def answer(body: object) -> bytes:
    encoded = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(encoded) + encoded


async def test_what_was_read_is_changed_only_where_its_tag_still_fits():
    read = b'HTTP/1.1 200 OK\r\netag: "7"\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}'

    async with answering(read, answer({}), answer({})) as (url, requests), Client(Address(url)) as client:
        found = await client.tagged("/v1/agents/helper")
        untagged = await client.tagged("/v1/agents")
        await client.delete("/v1/agents/helper", headers={"If-Match": found.tag or ""})

    assert (found.body, found.tag, untagged.tag) == ({}, '"7"', None)
    assert 'if-match: "7"' in requests[2]


async def test_pages_are_followed_to_the_last_cursor():
    first, last = {"jobs": [1], "next_cursor": "c2"}, {"jobs": [2], "next_cursor": None}

    async with answering(answer(first), answer(last)) as (url, requests), Client(Address(url)) as client:
        pages = [page async for page in client.pages("/v1/jobs", limit=1)]

    assert pages == [first, last]
    assert [request.split()[1] for request in requests] == ["/v1/jobs?limit=1", "/v1/jobs?cursor=c2&limit=1"]


async def test_each_submission_has_an_idempotency_key_of_its_own():
    accepted = {"job_id": "j1", "status": "queued"}

    async with answering(answer(accepted), answer(accepted)) as (url, requests), Client(Address(url)) as client:
        assert await client.submit({"input": "hi"}) == accepted
        await client.submit({"input": "hi"}, wait_s=5)

    keys = {line for request in requests for line in request.splitlines() if line.startswith("idempotency-key: ")}
    assert len(keys) == 2
    assert [request.split()[1] for request in requests] == ["/v1/jobs", "/v1/jobs?wait=5"]


async def test_following_ends_where_the_job_is_still_parked():
    stream = STREAM + parks(1) + sse(2, "job.resumed") + parks(3) + sse(4, "job.resumed")
    running, parked = {"status": "running"}, {"status": "parked"}
    seen: list[int] = []

    async with answering(stream, answer(running), answer(parked)) as (url, _), Client(Address(url)) as client:
        job = await client.follow("j1", on_event=lambda event: seen.append(event["seq"]))

    assert (job, seen) == (parked, [1, 2, 3])


async def test_following_goes_on_past_the_wait_for_a_turn():
    stream = STREAM + parks(1, "turn") + sse(2, "job.resumed") + sse(3, "job.completed")

    async with answering(stream, answer({"status": "completed"})) as (url, _), Client(Address(url)) as client:
        assert await client.follow("j1") == {"status": "completed"}


@pytest.mark.parametrize("why", [name for name, one in PARK_REASONS.items() if one.ended_by == "itself"])
async def test_following_goes_on_past_waits_that_end_by_themselves(why: str):
    stream = STREAM + parks(1, why) + sse(2, "job.resumed") + sse(3, "job.completed")

    async with answering(stream, answer({"status": "completed"})) as (url, _), Client(Address(url)) as client:
        assert await client.follow("j1") == {"status": "completed"}


@pytest.mark.parametrize("why", [name for name, one in PARK_REASONS.items() if one.ended_by == "person"])
async def test_following_ends_where_only_a_person_helps(why: str):
    parked = {"status": "parked"}

    async with answering(STREAM + parks(1, why), answer(parked)) as (url, _), Client(Address(url)) as client:
        assert await client.follow("j1") == parked


def test_every_reason_to_park_has_its_words():
    reasons = get_args(Waiting.model_fields["why"].annotation)
    waiting = {"wait_id": "w", "after": "j0", "tool": "pay", "question": "Did it?", "children": ["j2"]}

    assert set(reasons) <= set(PARK_REASONS)
    for why in reasons:
        words = in_words("j1", {**waiting, "why": why})
        assert "None" not in words and "{" not in words
    assert "jobs answer j1 w" in in_words("j1", {**waiting, "why": "needs_decision"})
    assert "jobs answer" not in in_words("j1", {**waiting, "why": "children"})


async def test_following_returns_the_job_at_its_end():
    async with answering(STREAM + sse(1, "job.completed"), answer({"answer": "yes"})) as (url, _):
        async with Client(Address(url)) as client:
            assert await client.follow("j1") == {"answer": "yes"}


async def test_a_tenants_events_resume_behind_the_last_heartbeat(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "RECONNECT_AFTER_S", 0)
    first = STREAM + b'id: 7.0\nevent: job.claimed\ndata: {"seq": 3}\n\n: ping\nid: 9\n\n'
    rest = STREAM + b'id: 11.0\nevent: job.completed\ndata: {"seq": 4}\n\n'

    async with answering(first, rest) as (url, requests), Client(Address(url, "wl_key")) as client:
        events = client.tenant_events(types="job.*")
        heard = [await anext(events), await anext(events)]
        await events.aclose()

    assert [event["type"] for event in heard] == ["job.claimed", "job.completed"]
    assert "types=job" in requests[0] and "last-event-id" not in requests[0] and "last-event-id: 9" in requests[1]
