"""One job's log: append expecting a sequence, read it fast, never guess."""

from __future__ import annotations

import asyncio
import os
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from secrets import token_hex
from typing import Any, Literal

import orjson
import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg

from wayline.chassis import Bus, WrongSequence
from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.chassis.connection.bus import AWAY
from wayline.chassis.nats_client.direct_get import Batch, read_batch
from wayline.contracts import headers as h
from wayline.contracts.errors import Bug, Full, Unavailable
from wayline.contracts.events import Event, read_event
from wayline.journal.record import Head, State, claims_after, decode, encode, is_record, names_webhook, state_after
from wayline.telemetry import metrics

log = structlog.get_logger()

READ_BATCH = 1_000
"""Records asked for in one request."""
READ_MAX_BYTES = 8 * 1024 * 1024
"""Bytes of one answer: what a reader may have to hold at once."""
READ_TIMEOUT_S = 5.0
READ_TRIES = 3
READ_RETRY_S = 0.1
"""The pause before another try: who has just said that there is no leader says so again."""
BEHIND_MAX_S = 10.0
"""How long a replica may be behind the leader, or a record gone that the leader had, before a read is given up."""
BEHIND_RETRY_S = 0.02
FULL_RETRY_S = 1.0
NO_MESSAGE = 10037
RECORD_BYTES = 256
"""What a record takes in its stream beside its body, and never more: what is counted is there."""

# A record's id need only differ from every other's: one random draw a process, and a count.
_process = token_hex(12)
_APPENDS = count()


def _draw_again() -> None:
    """Give a forked process ids of its own: the stream takes a record under a known id for one that it has."""
    global _process  # noqa: PLW0603 - one draw a process
    _process = token_hex(12)


os.register_at_fork(after_in_child=_draw_again)


class Fenced(Exception):
    """Another writer has appended to the job's log since: stop, touch nothing, forget the ticket."""


STREAM = "EVENTS"


@dataclass(frozen=True, slots=True)
class Stored:
    """A message of a stream as a leader read returns it."""

    sequence: int
    headers: dict[str, str]
    body: bytes
    stored_ns: int = 0
    """When the stream stored it, as its deliveries say."""


async def leader_read(bus: Bus, stream: str, subject: str) -> Stored | None:
    """Return the last message on a literal subject from the stream's leader: the only read that may decide something.

    Raises Unavailable when the bus does not answer.
    """
    return await _leader_read(bus, stream, {"last_by_subj": subject}, subject)


async def leader_next(bus: Bus, stream: str, subject: str, *, start: int) -> Stored | None:
    """Return the first message on a literal subject from a stream sequence on, as the stream's leader knows it.

    Raises Unavailable when the bus does not answer.
    """
    return await _leader_read(bus, stream, {"seq": start, "next_by_subj": subject}, subject)


async def _leader_read(bus: Bus, stream: str, wanted: dict[str, Any], subject: str) -> Stored | None:
    request = orjson.dumps(wanted)
    for tried in range(READ_TRIES):
        if tried:
            await asyncio.sleep(READ_RETRY_S)
        try:
            reply = await bus.request(f"{bus.api}.STREAM.MSG.GET.{stream}", request, timeout_s=READ_TIMEOUT_S)
        except AWAY:
            continue
        answer = orjson.loads(reply.data)
        if "message" in answer:
            message = answer["message"]
            headers = _parse_headers(b64decode(message.get("hdrs", "")))
            body, stored_ns = b64decode(message.get("data", "")), _nanoseconds(message["time"])
            return Stored(message["seq"], headers, body, stored_ns)
        # A stream that is not there is a 404 too, and no word on what was in it.
        if answer["error"].get("err_code") == NO_MESSAGE:
            return None
        if answer["error"]["code"] != 503:
            raise Bug(f"reading {subject}: {answer['error']}")
    raise Unavailable("the bus", detail=f"reading {subject}")


def _nanoseconds(time: str) -> int:
    """Return the nanoseconds since 1970 of a time as the server writes it; a datetime holds microseconds only."""
    seconds, _, fraction = time.removesuffix("Z").partition(".")
    whole = int(datetime.fromisoformat(seconds).replace(tzinfo=UTC).timestamp())
    return whole * 1_000_000_000 + int(fraction.ljust(9, "0") or 0)


def _parse_headers(raw: bytes) -> dict[str, str]:
    # A client may put into its headers what is no text; what we look for in them is ours, and is.
    pairs = (line.partition(":") for line in raw.decode(errors="replace").split("\r\n")[1:] if line)
    return {name: value.strip() for name, _, value in pairs}


async def bulk_read(
    bus: Bus, stream: str, subject: str, *, after: int = 0, upto: int | None = None
) -> AsyncGenerator[Msg]:
    """Yield every message on a literal subject between two stream sequences, in as few requests as the server allows.

    A direct read: it may lag behind the leader, so read up to a sequence that a leader read has told, and no further:
    what has come since needs another read from the leader. Raises Unavailable when that sequence does not come.
    """
    start, behind_s = after + 1, 0.0
    while True:
        got = await _batch(
            bus, stream, {"seq": start, "next_by_subj": subject, "batch": READ_BATCH, "max_bytes": READ_MAX_BYTES}
        )
        for message in got.messages:
            sequence = int((message.headers or {})["Nats-Sequence"])
            if upto is not None and sequence > upto:
                return
            start, behind_s = sequence + 1, 0.0
            yield message
        if got.pending == 0 and (upto is None or start > upto):
            return
        if not got.messages:
            # Nothing came though the leader knows of more: the replica that answered is behind.
            if behind_s >= BEHIND_MAX_S:
                raise Unavailable("the bus", detail=f"{subject} ends before sequence {upto}")
            await asyncio.sleep(BEHIND_RETRY_S)
            behind_s += BEHIND_RETRY_S


async def read_page(bus: Bus, subject: str, start: dict[str, Any], *, most: int, max_bytes: int) -> Batch:
    """Read some messages on a subject, which may have wildcards, from a sequence or a time on. Raises Unavailable.

    A direct read: the replica that answers may be behind.
    """
    return await _batch(bus, STREAM, {**start, "next_by_subj": subject, "batch": most, "max_bytes": max_bytes})


async def _batch(bus: Bus, stream: str, request: dict[str, Any]) -> Batch:
    for tried in range(READ_TRIES):
        if tried:
            await asyncio.sleep(READ_RETRY_S)
        with suppress(TimeoutError, nats_errors.Error):
            got = await read_batch(bus.nc, f"{bus.api}.DIRECT.GET.{stream}", request, timeout_s=READ_TIMEOUT_S)
            if got is not None:
                return got
    raise Unavailable("the bus", detail=f"reading {request['next_by_subj']}")


async def record_read(bus: Bus, subject: str, *, after: int = 0, upto: int | None = None) -> AsyncGenerator[Msg]:
    """Yield every record on a log's subject between two stream sequences; other messages are passed over and counted.

    Raises Unavailable as `bulk_read` does.
    """
    async for message in bulk_read(bus, STREAM, subject, after=after, upto=upto):
        if is_record(message.headers):
            yield message
        else:
            headers = message.headers or {}
            note_foreign(headers["Nats-Subject"], int(headers["Nats-Sequence"]))


async def last_record(bus: Bus, subject: str) -> Stored | None:
    """Read a log's last record as the leader knows it, passing over messages that are none. Raises Unavailable."""
    last = await leader_read(bus, STREAM, subject)
    if last is None or is_record(last.headers):
        return last
    return await _newest_record(bus, subject, after=0, upto=last.sequence)


async def _newest_record(bus: Bus, subject: str, *, after: int, upto: int) -> Stored | None:
    newest: Msg | None = None
    async for message in record_read(bus, subject, after=after, upto=upto):
        newest = message
    if newest is None:
        return None
    headers = newest.headers or {}
    return Stored(int(headers["Nats-Sequence"]), headers, newest.data)


def note_foreign(subject: str, sequence: int) -> None:
    """Count a message of a log that is no record."""
    metrics.foreign_messages.labels(STREAM).inc()
    log.warning("a message of a log is no record, passing over it", subject=subject, sequence=sequence)


class JobLog:
    """The log of one job; each append names the record that its writer believes to be the last."""

    def __init__(self, bus: Bus, tenant: str, job_id: str) -> None:
        self._bus = bus
        self.tenant = tenant
        self.job_id = job_id
        self.subject = f"events.{tenant}.{job_id}"

    async def last(self) -> Head | None:
        """Return the last record, from the leader; None if there is no log."""
        stored = await last_record(self._bus, self.subject)
        if stored is None:
            return None
        body = stored.body
        if h.CLAIMS in stored.headers:
            body = await self._bus.claims.check_out(body, within=f"{self.tenant}/")
        return Head.read(stored.sequence, stored.headers, body)

    async def begin(self, events: Sequence[Event], *, content_hash: str, lane: str) -> Head:
        """Write the first record; the head has its body. Raises Fenced when there is a log already."""
        body = encode(events)
        state, webhook = state_after(State.NEW, events), names_webhook(events[0])
        head = Head(0, state, events[-1].seq, content_hash, lane=lane, names_webhook=webhook)
        return (await self._append(body, head, expected=0))._replace(body=body)

    async def append(
        self,
        events: Sequence[Event],
        after: Head,
        *,
        owner: str | None = None,
        attempt: int | None = None,
        epoch: int | None = None,
        signals_seen: int | None = None,
        cost: Decimal | Literal["as before"] | None = "as before",
    ) -> Head:
        """Add one record after `after`, all or nothing; returns the new head.

        What is not given is carried over. Raises Fenced when the log's last record is another one; an append whose ack
        was lost is found again and counts.
        """
        if events[0].seq != after.seq + 1:
            raise Bug(f"{self.subject}: event {events[0].seq} does not follow {after.seq}")
        head = Head(
            sequence=after.sequence,
            state=state_after(after.state, events),
            seq=events[-1].seq,
            content_hash=after.content_hash,
            lane=after.lane,
            owner=after.owner if owner is None else owner,
            attempt=claims_after(after.attempt if attempt is None else attempt, events),
            epoch=after.epoch if epoch is None else epoch,
            signals_seen=after.signals_seen if signals_seen is None else signals_seen,
            cost=after.cost if cost == "as before" else cost,
            names_webhook=after.names_webhook,
        )
        return await self._append(encode(events), head, expected=after.sequence)

    async def _append(self, body: bytes, head: Head, *, expected: int) -> Head:
        msg_id = f"{_process}-{next(_APPENDS)}"
        headers = {h.RECORD: head.header(), h.MSG_ID: msg_id, h.EXPECTED_LAST: str(expected)}
        while True:
            try:
                sent = body
                if len(body) > MESSAGE_MAX:
                    sent, _ = await self._bus.claims.check_in(body, f"{self.tenant}/{self.job_id}")
                    headers[h.CLAIMS] = "1"
                ack = await self._bus.store(self.subject, sent, headers)
                self._bus.stored.note(self.tenant, len(sent) + RECORD_BYTES)
                return head.stored(ack.seq, msg_id)
            except WrongSequence:
                # The server checks the sequence before it looks for duplicates: our own write, its ack lost, looks
                # the same as another writer's.
                with suppress(Unavailable):
                    last = await leader_read(self._bus, STREAM, self.subject)
                    if last is None:
                        raise Fenced(self.subject) from None
                    newest: Stored | None = last
                    if not is_record(last.headers):
                        newest = await _newest_record(self._bus, self.subject, after=expected, upto=last.sequence)
                    if newest is None:
                        # Nobody of us has written since: the record goes behind what is no record.
                        expected = last.sequence
                        headers[h.EXPECTED_LAST] = str(expected)
                        continue
                    if newest.headers.get(h.MSG_ID) != msg_id:
                        raise Fenced(self.subject) from None
                    return head.stored(newest.sequence, msg_id)
            except Unavailable:
                # Nothing else may be done with this job until it is known whether the record is in.
                await asyncio.sleep(READ_RETRY_S)
            except Full as error:
                # Room comes back as old logs expire or an operator makes it; until then a running job waits here.
                log.error("no room for a record", subject=self.subject, why=str(error))
                await asyncio.sleep(FULL_RETRY_S)

    async def first(self) -> list[Event]:
        """Return the events of the first record: what was asked for, and what was decided. Raises Unavailable."""
        start = 1
        while True:
            got = await _batch(self._bus, STREAM, {"seq": start, "next_by_subj": self.subject, "batch": 1})
            if not got.messages:
                raise Unavailable("the bus", detail=f"{self.subject} has no first record here")
            [message] = got.messages
            if is_record(message.headers):
                return [read_event(value) for value in decode(await self._bus.body(message, tenant=self.tenant))]
            start = int((message.headers or {})["Nats-Sequence"]) + 1

    async def records(self, upto: int | None = None, *, after: int = 0) -> list[list[dict[str, Any]]]:
        """Return every record's events as decoded JSON, oldest first, between two stream sequences."""
        found = []
        async for message in record_read(self._bus, self.subject, after=after, upto=upto):
            found.append(decode(await self._bus.body(message, tenant=self.tenant)))
        return found

    async def values(self, upto: int) -> AsyncIterator[dict[str, Any]]:
        """Yield every event as decoded JSON, oldest first, up to a stream sequence; one record is held at a time."""
        async for message in record_read(self._bus, self.subject, upto=upto):
            for value in decode(await self._bus.body(message, tenant=self.tenant)):
                yield value

    async def read(self, after_seq: int = 0) -> AsyncIterator[Event]:
        """Yield every event after a job-local number, as far as the leader knows now."""
        last = await leader_read(self._bus, STREAM, self.subject)
        if last is None:
            return
        async for message in record_read(self._bus, self.subject, upto=last.sequence):
            for value in decode(await self._bus.body(message, tenant=self.tenant)):
                if value["seq"] > after_seq:
                    yield read_event(value)


async def have_ended(bus: Bus, tenant: str, job_ids: Iterable[str]) -> bool:
    """Return whether all of these jobs have ended; one whose log is gone counts as ended."""
    for job_id in job_ids:
        head = await JobLog(bus, tenant, job_id).last()
        if head is not None and head.state is not State.ENDED:
            return False
    return True
