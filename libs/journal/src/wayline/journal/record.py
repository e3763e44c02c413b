"""A record: the events of one step in one JetStream message, with headers that say enough to decide without a fold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from wayline.contracts import headers as h
from wayline.contracts.events import (
    EVENT_TYPES,
    LOST,
    TERMINAL_TYPES,
    AuxiliaryFailed,
    Event,
    JobSubmitted,
    ModelFailed,
    read_event,
)
from wayline.contracts.jobs import Carried

CARRIED_MAX_BYTES = 8 * 1024
"""What a ticket carries of a record: the stream of tickets then holds more of them than jobs may be waiting."""


class State(StrEnum):
    """Where a job stands, as its last record says."""

    NEW = "new"
    ACTIVE = "active"
    PARKED = "parked"
    ENDED = "ended"


PROGRESS = frozenset(
    {
        "model.completed",
        "model.failed",
        "aux.completed",
        "aux.failed",
        "tool.completed",
        "decision.made",
        "approval.decided",
        "job.parked",
    }
)
"""Events that show a claim got somewhere; an intent alone does not: its effect may be what kills every holder."""


class Head(NamedTuple):
    """The last record of a job's log: all that a claim, a wake-up or a second submission needs to know."""

    sequence: int
    state: State
    seq: int
    """The job-local number of its last event."""
    content_hash: str
    owner: str = ""
    """`<ticket stream sequence>:<delivery>` under which the job was last claimed."""
    attempt: int = 0
    epoch: int = 0
    signals_seen: int = 0
    cost: Decimal | None = Decimal(0)
    lane: str = "interactive"
    msg_id: str = ""
    body: bytes = b""
    """What the record holds, where it was read or has just been begun."""
    names_webhook: bool = False
    """Its job names a webhook itself: a reader of headers alone knows."""

    @property
    def values(self) -> list[dict[str, Any]]:
        """Return the record's events as decoded JSON."""
        return decode(self.body)

    @property
    def owner_ticket(self) -> int:
        return int(self.owner.partition(":")[0] or 0)

    @property
    def owner_delivery(self) -> int:
        return int(self.owner.partition(":")[2] or 0)

    @property
    def events(self) -> list[Event]:
        return [read_event(value) for value in self.values]

    def stored(self, sequence: int, msg_id: str) -> Head:
        """Return the head once its record is in the stream, without the record's body."""
        # Not `_replace`, which looks for every field by its name: this is made for each record.
        return Head(
            sequence=sequence,
            state=self.state,
            seq=self.seq,
            content_hash=self.content_hash,
            owner=self.owner,
            attempt=self.attempt,
            epoch=self.epoch,
            signals_seen=self.signals_seen,
            cost=self.cost,
            lane=self.lane,
            msg_id=msg_id,
            names_webhook=self.names_webhook,
        )

    def header(self) -> str:
        """Return the record's header, for instance `state=active seq=4 owner=17:1 …`.

        One header, because a client encodes and the server reads each one on its own.
        """
        cost = "unknown" if self.cost is None else self.cost
        return (
            f"state={self.state} seq={self.seq} owner={self.owner} attempt={self.attempt} epoch={self.epoch} "
            f"signals={self.signals_seen} cost={cost} lane={self.lane} content={self.content_hash}"
            f"{' webhook=1' if self.names_webhook else ''}"
        )

    @classmethod
    def read(cls, sequence: int, headers: Mapping[str, str], body: bytes) -> Head:
        fields = header_fields(headers)
        return cls(
            sequence=sequence,
            state=State(fields["state"]),
            seq=int(fields["seq"]),
            content_hash=fields["content"],
            owner=fields["owner"],
            attempt=int(fields["attempt"]),
            epoch=int(fields["epoch"]),
            signals_seen=int(fields["signals"]),
            cost=None if fields["cost"] == "unknown" else Decimal(fields["cost"]),
            lane=fields["lane"],
            msg_id=headers.get(h.MSG_ID, ""),
            body=body,
            names_webhook="webhook" in fields,
        )

    def carried(self) -> Carried | None:
        """Return the record for a ticket to carry; None if it is too large, or not known here."""
        if not 0 < len(self.body) <= CARRIED_MAX_BYTES:
            return None
        return Carried(said=self.header(), body=self.body.decode())

    @classmethod
    def brought(cls, sequence: int, record: Carried) -> Head:
        """Return the head that a ticket carried; only an append after it can show that it is still the last record."""
        return cls.read(sequence, {h.RECORD: record.said}, record.body.encode())


_HEADER = re.compile(
    r"state=(new|active|parked|ended) seq=\d+ owner=(\d+:\d+)? attempt=\d+ epoch=\d+ signals=\d+ "
    r"cost=(unknown|[\d.Ee+-]+) lane=\S* content=\S*( .*)?"
)


def is_record(headers: Mapping[str, str] | None) -> bool:
    """Return whether a message of a log is a record; we wrote nothing else there, so nothing else counts."""
    return headers is not None and _HEADER.fullmatch(headers.get(h.RECORD, "")) is not None


def header_fields(headers: Mapping[str, str]) -> dict[str, str]:
    """Parse a record's header into its fields."""
    return dict(word.split("=", 1) for word in headers[h.RECORD].split(" "))


def names_webhook(first: Event) -> bool:
    """Return whether a job's first event names a webhook."""
    return isinstance(first, JobSubmitted) and first.job.options.webhook is not None


def progressed(events: Sequence[Event]) -> bool:
    """Return whether these events show progress of their claim; recording what the previous holder lost is none."""
    return any(event.type in PROGRESS and not _lost(event) for event in events)


def _lost(event: Event) -> bool:
    return isinstance(event, ModelFailed | AuxiliaryFailed) and event.error.code == LOST


def claims_after(claims: int, events: Sequence[Event]) -> int:
    """Count claims in a row without progress, these events included; a claim that was handed back does not count."""
    if claims == 0 or progressed(events):
        return 0
    return claims - any(event.type == "job.handed_back" for event in events)


def state_after(before: State, events: Sequence[Event]) -> State:
    """Return the state in which a record's events leave the job."""
    state = before
    for event in events:
        if event.type in TERMINAL_TYPES:
            return State.ENDED
        if event.type == "job.claimed":
            state = State.ACTIVE
        elif event.type == "job.parked":
            state = State.PARKED
    return state


def encode(events: Sequence[Event]) -> bytes:
    """Encode the body of a record."""
    return b'{"events":[' + b",".join(e.__pydantic_serializer__.to_json(e) for e in events) + b"]}"


def decode(body: bytes) -> list[dict[str, Any]]:
    """Decode a record's events as JSON objects, not validated."""
    return orjson.loads(body)["events"]


def read_record(body: bytes) -> list[Event]:
    """Read the events of a record; a type this build does not know becomes `Unknown`."""
    return [read_event(value) for value in decode(body)]


def unknown_types(values: Sequence[dict[str, Any]]) -> set[str]:
    """Return the event types that this build does not know."""
    return {value["type"] for value in values} - EVENT_TYPES.keys()
