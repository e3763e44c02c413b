"""All logs of a tenant in the order in which the stream stored them, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nats.aio.msg import Msg

from wayline.chassis import Bus
from wayline.contracts import headers as h
from wayline.journal.log import STREAM, leader_next, leader_read, note_foreign, read_page
from wayline.journal.record import decode, is_record

PAGE_RECORDS = 200
PAGE_MAX_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TenantRecord:
    """A record of one of a tenant's jobs."""

    sequence: int
    job_id: str
    values: list[dict[str, Any]]
    """Its events as decoded JSON; large fields are references still where `has_claims`."""
    message: Msg

    @property
    def has_claims(self) -> bool:
        """Return whether large fields of it are in the object store."""
        return h.CLAIMS in (self.message.headers or {})


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Some records, and how far the stream was read for them."""

    records: list[TenantRecord]
    upto: int
    """Nothing of the tenant is before this sequence but what was told."""
    is_last: bool


class TenantLog:
    """Reads the records of a tenant's jobs."""

    def __init__(self, bus: Bus, tenant: str) -> None:
        self._bus = bus
        self._subject = f"events.{tenant}.*"

    async def last(self) -> int:
        """Return the sequence of the newest message, 0 where there is none. Raises Unavailable."""
        stored = await leader_read(self._bus, STREAM, self._subject)
        return 0 if stored is None else stored.sequence

    async def stored_after(self, sequence: int) -> datetime | None:
        """Return when the first message behind a sequence was stored; None: there is none. Raises Unavailable."""
        stored = await leader_next(self._bus, STREAM, self._subject, start=sequence + 1)
        return None if stored is None else datetime.fromtimestamp(stored.stored_ns / 1e9, UTC)

    async def page(self, *, after: int, since: datetime | None = None) -> RecordPage:
        """Return the records behind a sequence, or since a moment, as many as fit a page. Raises Unavailable."""
        start: dict[str, Any] = {"seq": after + 1} if since is None else {"start_time": since.isoformat()}
        got = await read_page(self._bus, self._subject, start, most=PAGE_RECORDS, max_bytes=PAGE_MAX_BYTES)
        records: list[TenantRecord] = []
        for message in got.messages:
            record = _record(message)
            after = int((message.headers or {})["Nats-Sequence"])
            if record is not None:
                records.append(record)
        return RecordPage(records, after, is_last=got.pending == 0)

    async def first_of(self, job_id: str) -> TenantRecord | None:
        """Return the oldest record of a job; None: its log is gone. Raises Unavailable."""
        subject, after = self._subject.replace("*", job_id), 0
        while True:
            got = await read_page(self._bus, subject, {"seq": after + 1}, most=1, max_bytes=PAGE_MAX_BYTES)
            if not got.messages:
                return None
            if (record := _record(got.messages[0])) is not None:
                return record
            after = int((got.messages[0].headers or {})["Nats-Sequence"])


def _record(message: Msg) -> TenantRecord | None:
    headers = message.headers or {}
    sequence, subject = int(headers["Nats-Sequence"]), headers["Nats-Subject"]
    if not is_record(headers):
        note_foreign(subject, sequence)
        return None
    return TenantRecord(sequence, subject.rpartition(".")[2], decode(message.data), message)
