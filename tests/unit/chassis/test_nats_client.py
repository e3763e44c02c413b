"""Our encoder and decoder of headers against nats-py's own: the same bytes, the same dictionaries, the same errors."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nats import errors as nats_errors
from nats.aio.client import Client

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


async def _published(client: Client, headers: dict[str, str]) -> tuple[bytes, dict[str, int]]:
    client._flush_queue = asyncio.Queue()
    # Somebody is flushing already.
    client._flush_queue.put_nowait(asyncio.Future())
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


@given(LINES)
@example([b"traceparent: \x1ca\x1c "])
def test_headers_are_read_as_nats_py_reads_them(lines: list[bytes]):
    raw = b"\r\n" + b"\r\n".join(lines) + b"\r\n\r\n"

    assert BusClient._parse_header_lines(raw) == Client._parse_header_lines(raw)


def test_usual_headers_take_the_quick_way():
    encoded = encode_headers(USUAL)

    assert decode_headers(cast("bytes", encoded).removeprefix(b"NATS/1.0")) == USUAL
