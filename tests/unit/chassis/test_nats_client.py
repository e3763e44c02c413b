"""Our encoder and decoder of headers against nats-py's own: the same bytes, the same dictionaries, the same errors."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from wayline.chassis.nats_client.bus_client import BusClient, decode_headers, encode_headers

USUAL_NAMES = st.sampled_from(["Nats-Msg-Id", "traceparent", "Wayline-Record"])
ODD_NAMES = st.one_of(st.sampled_from([" Padded ", "bad name", "", "a:b", "ä", "a\r\nb", "n" * 70]), st.text())
NAMES = st.one_of(USUAL_NAMES, ODD_NAMES)
VALUES = st.one_of(
    st.sampled_from(["", " a ", "a: b", "a\r\nInjected: b", "a\nb", "a\rb", "\x1ca\x1c", "é"]), st.text()
)
HEADERS = st.one_of(st.dictionaries(USUAL_NAMES, VALUES), st.dictionaries(NAMES, VALUES))
LINE = st.builds(lambda name, value: f"{name}:{value}".encode(errors="replace"), NAMES, VALUES)
LINES = st.one_of(st.lists(LINE, max_size=2), st.lists(st.one_of(st.binary(), LINE)))
USUAL = {"Nats-Msg-Id": "p-1", "Wayline-Record": "state=active seq=4 owner=17:1", "traceparent": "00-ab-cd-01"}


def _being_flushed(client: Client) -> None:
    client._flush_queue = asyncio.Queue()
    client._flush_queue.put_nowait(asyncio.Future())


async def _published(client: Client, headers: dict[str, str] | None) -> tuple[bytes, dict[str, int]]:
    _being_flushed(client)
    await client._send_publish("events.t.j", "_INBOX.1", b"body", 4, headers)
    return b"".join(client._pending), client.stats


@given(HEADERS)
def test_headers_are_sent_as_nats_py_sends_them(headers: dict[str, str]):
    async def both() -> None:
        try:
            expected = await _published(Client(), headers)
        except (nats_errors.BadHeaderError, UnicodeEncodeError) as error:
            with pytest.raises(type(error)):
                await _published(BusClient(), headers)
            return
        assert await _published(BusClient(), headers) == expected

    asyncio.run(both())


@pytest.mark.parametrize("headers", [None, {}])
async def test_a_message_without_headers_is_sent_as_nats_py_sends_it(headers: dict[str, str] | None):
    assert await _published(BusClient(), headers) == await _published(Client(), headers)


def _deliveries(client: Client) -> list[Msg]:
    replies = [
        "$JS.ACK.EVENTS.tracing.1.7.7.1.0",
        "",
        "$JS.ACK.EVENTS.tracing.1.8.8.1.0",
        "$JS.ACK.EVENTS.tracing.1.9.9.1.0",
    ]
    return [Msg(client, "events.t.j", reply, b"body") for reply in replies]


async def _connected(client: Client) -> list[Msg]:
    _being_flushed(client)
    client._status = Client.CONNECTED
    return _deliveries(client)


async def test_a_batch_is_acked_as_each_of_its_messages_would_be():
    ours, theirs = BusClient(), Client()
    batch, one_by_one = await _connected(ours), await _connected(theirs)

    await ours.ack_all(batch)
    for message in one_by_one:
        if message.reply:
            await message.ack()

    assert (b"".join(ours._pending), ours.stats) == (b"".join(theirs._pending), theirs.stats)
    assert [message.is_acked for message in batch] == [message.is_acked for message in one_by_one]


async def test_a_batch_is_acked_once():
    client = BusClient()
    batch = await _connected(client)
    await client.ack_all(batch)
    client._pending.clear()

    await client.ack_all(batch)

    assert client._pending == []


async def test_no_message_counts_as_acked_on_a_closed_connection():
    client = BusClient()
    batch = await _connected(client)
    client._status = Client.CLOSED

    with pytest.raises(nats_errors.ConnectionClosedError):
        await client.ack_all(batch)

    assert not any(message.is_acked for message in batch)


@given(LINES)
@example([b"traceparent: \x1ca\x1c "])
def test_headers_are_read_as_nats_py_reads_them(lines: list[bytes]):
    raw = b"\r\n" + b"\r\n".join(lines) + b"\r\n\r\n"

    assert BusClient._parse_header_lines(raw) == Client._parse_header_lines(raw)


def test_usual_headers_take_the_quick_way():
    encoded = encode_headers(USUAL)

    assert decode_headers(cast("bytes", encoded).removeprefix(b"NATS/1.0")) == USUAL
