"""Logs of running jobs as a page has read them: the next reading asks only for what came after."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final
from weakref import WeakKeyDictionary

from wayline.client.client import TERMINAL, Client

LOGS_MAX: Final = 8
"""Logs that are kept for one key."""
EVENTS_MAX: Final = 5_000
"""Of a log that is kept; a longer one is read whole each time."""

_KEPT: WeakKeyDictionary[Client, OrderedDict[str, list[dict[str, Any]]]] = WeakKeyDictionary()
"""By the client of a key: what one key has read, no other sees."""


async def read_log(client: Client, job_id: str) -> list[dict[str, Any]]:
    """Return a job's events so far; the gateway decides each time whether this key may read them."""
    kept = _KEPT.setdefault(client, OrderedDict())
    known = kept.pop(job_id, None)
    if known is None:
        events = await client.log(job_id)
    else:
        events = [*known, *(await client.log(job_id, after=known[-1]["seq"]))]
    is_running = bool(events) and events[-1]["type"] not in TERMINAL
    if is_running and len(events) <= EVENTS_MAX:
        kept[job_id] = events
        while len(kept) > LOGS_MAX:
            kept.popitem(last=False)
    return events
