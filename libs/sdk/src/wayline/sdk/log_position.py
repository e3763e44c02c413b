"""How far a follower is in a job's log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nats.aio.msg import Msg

from wayline.contracts import headers as h
from wayline.contracts.events import TERMINAL_TYPES
from wayline.contracts.job_events import EventPage


@dataclass
class LogPosition:
    """What a follower knows of a log, from its pages and from the records that are written meanwhile."""

    last_seq: int
    """The number of the last event that it has."""
    sequence: int = 0
    """The place in the stream of the last record that it knows."""
    ended: bool = False
    log_unreadable: bool = False
    """Whether nothing can say what was missed."""

    def read_page(self, page: EventPage) -> list[dict[str, Any]]:
        """Return the new events of a page."""
        self.sequence = max(self.sequence, page.after)
        return self._new(page.events)

    def follows(self, record: Msg) -> bool:
        """Return whether nothing was missed between what is known and a record that has just been written."""
        last = int((record.headers or {}).get("Nats-Last-Sequence", 0))
        return self.log_unreadable or last <= self.sequence

    def read_record(self, record: Msg) -> list[dict[str, Any]]:
        """Return the new events of a record; one that is none of ours has no events."""
        headers = record.headers or {}
        self.sequence = max(self.sequence, int(headers.get("Nats-Sequence", 0)))
        return self._new(json.loads(record.data)["events"]) if h.RECORD in headers else []

    def _new(self, events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        new = [event for event in events if event["seq"] > self.last_seq]
        self.last_seq = max([self.last_seq, *(event["seq"] for event in new)])
        self.ended = self.ended or any(event["type"] in TERMINAL_TYPES for event in events)
        return new
