"""What many jobs were routed with alike, read once and held once for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.base import Frozen

ALIKE: dict[str, type[Frozen]] = {"config": AgentConfig, "candidates": e.Candidates}
"""The largest fields of `job.routed`."""
KEPT_MAX_BYTES = 16 * 1024 * 1024
"""Of the JSON of what is kept; the oldest goes first."""


class Shared:
    """The largest values of a log's first record, the same object wherever their JSON is the same.

    To validate them is much of what a claim costs, and a thousand waiting jobs of one agent would hold a thousand.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], Frozen] = {}
        self._bytes = 0

    def events(self, values: Iterable[dict[str, Any]]) -> list[e.Event]:
        """The events of decoded records; raises pydantic's ValidationError."""
        return [e.read_event(self._shared(value) if value.get("type") == "job.routed" else value) for value in values]

    def _shared(self, routed: dict[str, Any]) -> dict[str, Any]:
        return routed | {field: self._one(field, routed[field]) for field in ALIKE if field in routed}

    def _one(self, field: str, value: Any) -> Frozen:
        key = field, orjson.dumps(value)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = ALIKE[field].model_validate(value, extra="ignore")
            self._bytes += len(key[1])
            while self._bytes > KEPT_MAX_BYTES:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._bytes -= len(oldest[1])
        return known
