"""How a job's news is written for an EventSource."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest

from wayline.contracts.events import Event, JobResumed, SpanRef
from wayline.contracts.jobs import Delta
from wayline.gateway.errors import ShareOfStreams
from wayline.gateway.event_streams import LIST_PIECE_BYTES, EventStreams, as_list, encode
from wayline.gateway.keys import Caller

ANN, BOB = Caller("acme", "ann", key_id="a"), Caller("acme", "bob", key_id="b")
OTHER = Caller("other", "carl", key_id="c")


def resumed(seq: int) -> JobResumed:
    trace = SpanRef(trace_id="a" * 32, span_id="b" * 16)
    return JobResumed(job_id="j1", seq=seq, at=datetime(2026, 5, 1, tzinfo=UTC), trace=trace)


def test_an_events_id_is_its_seq_and_a_delta_has_none():
    event = encode(resumed(7)).decode().splitlines()
    delta = encode(Delta(tenant="t", job_id="j1", step=1, attempt=1, text="a\nb")).decode()

    assert (event[0], event[-2]) == ("event: job.resumed", "id: 7")
    assert json.loads(event[1].removeprefix("data: ")) == resumed(7).model_dump(mode="json")
    assert delta == 'event: delta\ndata: {"step":1,"attempt":1,"text":"a\\nb"}\n\n'


def test_idleness_is_a_comment_that_clients_pass_over():
    assert encode(None) == b": ping\n\n"


async def test_a_slow_client_pulls_no_more_than_it_reads():
    told = []

    async def endless() -> AsyncGenerator[Event | Delta | None, None]:
        for seq in range(1, 1_000):
            told.append(seq)
            yield resumed(seq)

    stream = EventStreams(most=1).events(endless(), ANN)
    for _ in range(3):
        await anext(stream)
    await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]

    assert told == [1, 2, 3]


async def test_a_list_is_json_however_many_events_there_are():
    for count in range(3):

        async def feed(most: int = count) -> AsyncGenerator[Event, None]:
            for seq in range(1, most + 1):
                yield resumed(seq)

        body = b"".join([part async for part in as_list(feed())])
        assert [event["seq"] for event in json.loads(body)] == list(range(1, count + 1))


async def test_a_long_list_is_sent_in_large_pieces():
    async def feed() -> AsyncGenerator[Event, None]:
        for seq in range(1, 2_001):
            yield resumed(seq)

    pieces = [part async for part in as_list(feed())]
    largest = LIST_PIECE_BYTES + len(pieces[0]) // 100

    assert [event["seq"] for event in json.loads(b"".join(pieces))] == list(range(1, 2_001))
    assert len(pieces) > 1 and all(LIST_PIECE_BYTES <= len(piece) < largest for piece in pieces[:-1])


async def test_a_key_and_a_tenant_follow_no_more_than_their_shares():
    streams = EventStreams(most=9, per_tenant=3, per_key=2)

    with streams.follower(ANN), streams.follower(ANN):
        with pytest.raises(ShareOfStreams, match="this key"):
            streams.require_room(ANN)
        with streams.follower(BOB):
            with pytest.raises(ShareOfStreams, match="tenant 'acme'"), streams.follower(BOB):
                pass
            streams.require_room(OTHER)
        streams.require_room(BOB)
    streams.require_room(ANN)
