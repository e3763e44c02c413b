"""Bodies and events of answers, read up to a limit."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.tool_registry.calls.server_answers import BROKE, UNREAD
from wayline.tool_registry.connection import readable_messages
from wayline.tool_registry.connection.http.answer_streams import AnswerLimits, EventStream, MessageBody
from wayline.tool_registry.connection.http.asked_messages import AskedMessage
from wayline.tool_registry.connection.http.bytes_in_flight import TOO_MANY, BytesInFlight
from wayline.tool_registry.connection.readable_messages import MARK, Proof

CALL = AskedMessage(7, "tools/call", in_session=False)
LIST = AskedMessage(7, "tools/list", in_session=False)
DONE = {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "done"}]}}


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in pieces, and may break off."""

    def __init__(self, pieces: Sequence[bytes], *, breaks: bool = False) -> None:
        self._pieces = pieces
        self._breaks = breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._breaks:
            raise httpx2.RemoteProtocolError("peer closed connection")

    async def aclose(self) -> None:
        pass


def limits(*, call_bytes: int = 10_000, in_flight: int = 100_000) -> AnswerLimits:
    return AnswerLimits(
        call_bytes=call_bytes, result_bytes=5_000, message_bytes=20_000, in_flight=BytesInFlight(in_flight)
    )


async def body_of(pieces: Sequence[bytes], *, asked: AskedMessage = CALL, breaks: bool = False, **bounds: int) -> Any:
    stream = MessageBody(Pieces(pieces, breaks=breaks), limits(**bounds), asked)
    return json.loads(b"".join([part async for part in stream]))


async def events_of(stream: EventStream) -> list[Any]:
    """Return the messages of a stream as a client reads them."""
    text = b""
    try:
        async for part in stream:
            text += part
    except httpx2.RemoteProtocolError:
        pass
    events = text.decode().split("\n\n")
    data = ["\n".join(line[6:] for line in event.split("\n") if line.startswith("data: ")) for event in events]
    return [json.loads(one) for one in data if one]


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), max_size=20), st.sampled_from(["\n", "\r\n", "\r"]))
async def test_events_are_read_however_their_bytes_are_cut(cuts, end):
    lines = [": hello", "id: 1", *(f"data: {line}" for line in json.dumps(DONE, indent=1).split("\n")), "", ""]
    raw, pieces = end.join(lines).encode(), []
    for cut in cuts:
        pieces.append(raw[:cut])
        raw = raw[cut:]

    found = await events_of(EventStream(Pieces([*pieces, raw]), limits(), CALL))

    assert found == [DONE]


async def test_events_of_other_kinds_and_messages_of_the_server_pass():
    ping = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
    raw = (
        f"event: endpoint\ndata: /messages\n\ndata: {json.dumps(ping)}\n\ndata: garbage\n\ndata: {json.dumps(DONE)}\n\n"
    )
    text = b"".join([part async for part in EventStream(Pieces([raw.encode()]), limits(), None)])

    assert b"event: endpoint\ndata: /messages\n\n" in text
    assert b"garbage" not in text
    assert json.dumps(ping, separators=(",", ":")).encode() in text


async def test_an_event_that_a_broken_stream_ends_in_is_read():
    whole = f"data: {json.dumps(DONE)}".encode()

    assert await events_of(EventStream(Pieces([whole], breaks=True), limits(), CALL)) == [DONE]
    [cut] = await events_of(EventStream(Pieces([whole[:-12]], breaks=True), limits(), CALL))
    assert cut["result"]["_meta"] == {UNREAD: BROKE}


@pytest.mark.parametrize("asked", [CALL, LIST])
async def test_a_body_above_its_limit_is_no_longer_read(asked):
    long = json.dumps({**DONE, "result": {"content": [{"type": "text", "text": "x" * 50_000}]}}).encode()
    message = await body_of([long[:9_000], long[9_000:]], asked=asked)

    if asked is CALL:
        assert message["result"]["_meta"] == {UNREAD: "the server's answer has more than 10000 bytes"}
    else:
        assert message["error"]["data"] == {MARK: Proof.UNKNOWN}


async def test_a_body_that_breaks_before_its_result_proves_nothing():
    message = await body_of([b'{"jsonrpc":"2.0","id":7,'], breaks=True)

    assert message["error"]["data"] == {MARK: Proof.LOST}


async def test_answers_of_one_tenant_share_what_may_be_held_at_once():
    long = {**DONE, "result": {"content": [{"type": "text", "text": "x" * 3_000}]}}
    shared = limits(in_flight=100)
    with shared.in_flight.holding() as other:
        assert other.take(60)
        cut = await body_of([json.dumps(long).encode()], in_flight=10)
        [event] = await events_of(EventStream(Pieces([f"data: {json.dumps(long)}\n\n".encode()]), shared, CALL))

    assert cut["result"]["_meta"] == {UNREAD: TOO_MANY}
    assert event["result"]["_meta"] == {UNREAD: TOO_MANY}
    assert shared.in_flight.take(100)


async def test_a_long_answer_is_read_on_a_thread(monkeypatch: pytest.MonkeyPatch):
    threads, read = set[int](), readable_messages.readable_now

    def noted(*of: Any, **more: Any) -> bytes | None:
        threads.add(threading.get_ident())
        return read(*of, **more)

    monkeypatch.setattr(readable_messages, "readable_now", noted)
    long = json.dumps({**DONE, "result": {"content": [{"type": "text", "text": "x" * 70_000}]}}).encode()

    assert (await body_of([long], call_bytes=80_000))["id"] == 7
    assert threads and threading.get_ident() not in threads
