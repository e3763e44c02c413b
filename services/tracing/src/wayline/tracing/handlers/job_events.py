"""A job's events for its tenant's own services: they cannot read the logs themselves."""

from __future__ import annotations

from typing import Any

from wayline.chassis import Bus
from wayline.contracts.job_events import EventPage, ReadEvents
from wayline.journal import JobLog, decode, is_record, note_foreign
from wayline.journal.log import STREAM, bulk_read, leader_read

PAGE_MAX_BYTES = 128 * 1024
"""Of the records in one answer, but for the first: an answer must fit a message, as each record does."""


class JobEvents:
    """Reads the logs of jobs."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def read(self, ask: ReadEvents) -> EventPage:
        """Return the events after a place in a job's log, as many as fit. Raises Unavailable."""
        log = JobLog(self._bus, ask.tenant, ask.job_id)
        last = await leader_read(self._bus, STREAM, log.subject)
        if last is None or last.sequence <= ask.after:
            return EventPage(after=ask.after)
        events: list[dict[str, Any]] = []
        after = ask.after
        size = 0
        async for message in bulk_read(self._bus, STREAM, log.subject, after=ask.after, upto=last.sequence):
            sequence = int((message.headers or {})["Nats-Sequence"])
            if is_record(message.headers):
                size += len(message.data)
                if events and size > PAGE_MAX_BYTES:
                    return EventPage(events=tuple(events), after=after, more=True)
                events += decode(message.data)
            else:
                note_foreign(log.subject, sequence)
            after = sequence
        return EventPage(events=tuple(events), after=after)
