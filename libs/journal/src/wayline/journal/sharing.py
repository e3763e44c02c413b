"""What many jobs were routed with alike, read once and held once for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.base import Frozen, slim_all
from wayline.contracts.jobs import JobOptions, Route

Values = dict[str, Any]

ROUTED: dict[str, type[Frozen]] = {
    "config": AgentConfig,
    "candidates": e.Candidates,
    "limits": e.Limits,
    "route": Route,
}
"""The fields of `job.routed` that many jobs have alike."""
_FIRST = frozenset({"job.submitted", "job.routed"})
KEPT_MAX_BYTES = 16 * 1024 * 1024
"""Of what is kept, by its JSON and what an object costs beside it; the oldest goes first."""
OBJECT_BYTES = 1_024


class Shared:
    """The values of a log's first record that jobs have alike: the same object wherever their JSON is the same.

    To validate them is much of what a claim costs, and a thousand waiting jobs of one agent would hold a thousand.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[type[Frozen], bytes], Frozen] = {}
        self._bytes = 0

    def events(self, values: Iterable[Values]) -> list[e.Event]:
        """Validate the events of decoded records. Raises pydantic's ValidationError."""
        return [e.read_event(self._shared(value)) for value in values]

    def _shared(self, value: Values) -> Values:
        # A log begins with them; to match every other event against their shapes costs as much as to share these.
        if value.get("type") not in _FIRST:
            return value
        match value:
            case {"type": "job.routed"}:
                alike = {field: self._one(kind, value[field]) for field, kind in ROUTED.items() if field in value}
                return value | alike
            case {"type": "job.submitted", "job": {"options": options} as job}:
                return value | {"job": job | {"options": self._one(JobOptions, options)}}
            case _:
                return value

    def _one(self, kind: type[Frozen], value: Any) -> Frozen:
        key = kind, orjson.dumps(value)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = kind.model_validate(value, extra="ignore")
            slim_all(known)
            self._bytes += len(key[1]) + OBJECT_BYTES
            while self._bytes > KEPT_MAX_BYTES:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._bytes -= len(oldest[1]) + OBJECT_BYTES
        return known
