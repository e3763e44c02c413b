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
KEPT_MAX = 512
"""Configurations and sets of candidates; the oldest goes first."""


class Shared:
    """The largest values of a log's first record, the same object wherever their JSON is the same.

    To validate them is a third of a claim, and a thousand waiting jobs of one agent would hold a thousand of each.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], Frozen] = {}

    def events(self, values: Iterable[dict[str, Any]]) -> list[e.Event]:
        """The events of decoded records; raises pydantic's ValidationError."""
        return [e.read_event(self._shared(value) if value.get("type") == "job.routed" else value) for value in values]

    def _shared(self, routed: dict[str, Any]) -> dict[str, Any]:
        return routed | {field: self._one(field, routed[field]) for field in ALIKE if field in routed}

    def _one(self, field: str, value: Any) -> Frozen:
        key = field, orjson.dumps(value)
        known = self._known.get(key)
        if known is None:
            known = ALIKE[field].model_validate(value)
            if len(self._known) >= KEPT_MAX:
                del self._known[next(iter(self._known))]
            self._known[key] = known
        return known
