"""Logs of running jobs as a page has read them: the next reading asks only for what came after."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from wayline.client.client import TERMINAL, Client

LOGS_MAX: Final = 8
"""Logs that are kept for one key."""
EVENTS_MAX: Final = 5_000
"""Of a log that is kept; a longer one is read whole each time."""
CHARS_MAX: Final = 2_000_000
"""Of a log that is kept, as JSON: a few events may be as large as many."""
KEPT_S: Final = 600
"""After which a log is read whole again: what was forgotten elsewhere meanwhile is not kept here."""


@dataclass(frozen=True, slots=True)
class _ReadLog:
    events: list[dict[str, Any]]
    chars: int
    began: float = 0.0
    """When its first event was read, by a clock that only goes on."""


_KEPT: WeakKeyDictionary[Client, OrderedDict[str, _ReadLog]] = WeakKeyDictionary()
"""By the client of a key: what one key has read, no other sees."""
_NOTHING: Final = _ReadLog([], 0, -KEPT_S)


async def read_log(client: Client, job_id: str, *, clock: Callable[[], float] = time.monotonic) -> list[dict[str, Any]]:
    """Return a job's events so far; the gateway decides each time whether this key may read them."""
    kept = _KEPT.setdefault(client, OrderedDict())
    known = kept.pop(job_id, _NOTHING)
    now = clock()
    if now - known.began > KEPT_S:
        known = _ReadLog([], 0, now)
    new = await client.log(job_id, after=known.events[-1]["seq"] if known.events else 0)
    events = [*known.events, *new]
    is_running = bool(events) and events[-1]["type"] not in TERMINAL
    if is_running and len(events) <= EVENTS_MAX:
        read = _ReadLog(events, known.chars + len(json.dumps(new, ensure_ascii=False)), known.began)
        if read.chars <= CHARS_MAX:
            kept[job_id] = read
        while len(kept) > LOGS_MAX:
            kept.popitem(last=False)
    return events


def forget_logs() -> None:
    """Keep nothing of what was read: something that it may have is forgotten now."""
    _KEPT.clear()
