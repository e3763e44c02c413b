"""What many jobs were routed with alike, read once and held once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import orjson

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.base import Frozen

F = TypeVar("F", bound=Frozen)

KEPT_MAX = 512
"""Configurations and sets of candidates; the oldest goes first."""


class Shared:
    """The largest values of a log's first record, the same object wherever their JSON is the same.

    To validate them is a third of a claim, and a thousand waiting jobs of one agent would hold a thousand of each.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[type[Frozen], bytes], Frozen] = {}

    def events(self, values: Iterable[dict[str, Any]]) -> Iterator[e.Event]:
        """The events of decoded records; raises pydantic's ValidationError."""
        for value in values:
            yield e.read_event(self._shared(value) if value.get("type") == "job.routed" else value)

    def _shared(self, routed: dict[str, Any]) -> dict[str, Any]:
        same: dict[str, Any] = {"config": self._one(AgentConfig, routed["config"])}
        if "candidates" in routed:
            same["candidates"] = self._one(e.Candidates, routed["candidates"])
        return {**routed, **same}

    def _one(self, kind: type[F], value: Any) -> F:
        key = kind, orjson.dumps(value)
        known = self._known.get(key)
        if not isinstance(known, kind):
            if len(self._known) >= KEPT_MAX:
                del self._known[next(iter(self._known))]
            known = self._known[key] = kind.model_validate(value)
        return known
