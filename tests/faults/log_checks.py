"""What must be true of every job's log, and a log as lines to read."""

from __future__ import annotations

from collections import Counter
from typing import Any

from nats.aio.msg import Msg

from wayline.contracts.events import TERMINAL_TYPES
from wayline.journal import header_fields, read_record


def problems(records: list[Msg]) -> list[str]:
    """Return what is wrong with a log, in words."""
    events = [event for record in records for event in read_record(record.data)]
    found = []
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        found.append(f"seq has a gap or a repeat: {[event.seq for event in events]}")
    ends = [event.seq for event in events if event.type in TERMINAL_TYPES]
    if ends != [len(events)]:
        found.append(f"terminal events at {ends} of {len(events)}")
    found += _twice(Counter((e.step, e.call) for e in events if e.type == "tool.completed"), "result of call")
    found += _twice(Counter(e.key for e in events if e.type == "tool.requested"), "intent")
    found += _twice(Counter(e.step for e in events if e.type == "model.completed"), "answer of step")
    claims = [event for event in events if event.type == "job.claimed"]
    if [claim.epoch for claim in claims] != list(range(1, len(claims) + 1)):
        found.append(f"epochs are {[claim.epoch for claim in claims]}")
    holder = ""
    for record in records:
        claimed = [event.owner for event in read_record(record.data) if event.type == "job.claimed"]
        holder = claimed[-1] if claimed else holder
        if header_fields(record.headers or {})["owner"] != holder:
            found.append(f"a record of {header_fields(record.headers or {})['owner']!r} while {holder!r} held the job")
    return found


def _twice(counted: Counter[Any], what: str) -> list[str]:
    return [f"{what} {key} is there {n} times" for key, n in counted.items() if n > 1]


def story(records: list[Msg]) -> str:
    """Return a log as lines to read when a test fails."""
    return "\n".join(
        f"{header_fields(record.headers or {})['owner']:>8} "
        + ", ".join(event.type for event in read_record(record.data))
        for record in records
    )
