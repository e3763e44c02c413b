"""Read the trace of a job that has just ended: services send their own spans within a second."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from wayline.client.client import Client
from wayline.client.errors import ApiError

LEAVES_AFTER_S = 1.5
"""Spans of services are stored this long after they ended: one export interval, and the way there."""
LEAVES_WAIT_S = 3.0
"""Spans missing after that are reported as missing and not waited for."""
AGAIN_S = 0.2
NOT_FOUND = 404
ENDED = frozenset({"completed", "failed", "cancelled"})


async def whole_trace(client: Client, job_id: str, *, wait_s: float = LEAVES_WAIT_S) -> dict[str, Any]:
    """Return the trace of a job; of one that ended within the last seconds, wait until its spans have arrived."""
    ended = (await client.job(job_id))["status"] in ENDED
    deadline = time.monotonic() + wait_s
    while True:
        late = time.monotonic() > deadline
        try:
            trace = await client.get(f"/v1/jobs/{job_id}/trace")
        except ApiError as error:
            # The log of a job is there before its trace is.
            if late or not ended or error.status != NOT_FOUND:
                raise
        else:
            if late or not ended or is_whole(trace, now=datetime.now(UTC)):
                return trace
        await asyncio.sleep(AGAIN_S)


def is_whole(trace: dict[str, Any], *, now: datetime) -> bool:
    """Return whether every span of an ended job can be expected to be there."""
    if trace["root"]["status"] == "open" or trace["totals"].get("missing"):
        return False
    return now - _last_end(trace["root"]) >= timedelta(seconds=LEAVES_AFTER_S)


def _last_end(root: dict[str, Any]) -> datetime:
    """Return when the last span of the tree ended; the root's own duration leaves out what the job waited."""
    ends: list[datetime] = []
    spans = [root]
    while spans:
        span = spans.pop()
        ends.append(datetime.fromisoformat(span["start"]) + timedelta(milliseconds=span["duration_ms"] or 0))
        spans += span["children"]
    return max(ends)
