"""Tracing's tables, as the projection of a log needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from wayline.tracing.rows import Rows

Key = tuple[str, str]
"""A job: its tenant and its id."""


class Drift(StrEnum):
    """How a job's rows differ from its log."""

    BEHIND = "behind"
    """Events are missing."""
    INCOMPLETE = "incomplete"
    """Ledger entries or steps are missing, or sum up to something else."""


class Tables(Protocol):
    """Jobs, steps, spans and the ledger, written for all tenants."""

    async def keep_spans(self) -> None: ...

    async def forget(self, *, days: int) -> int: ...

    async def add_labels_to_words(self) -> int: ...

    async def progress(self, keys: Sequence[Key]) -> dict[Key, int]: ...

    async def tenants(self, trace_ids: Iterable[str]) -> dict[str, str]: ...

    async def write(self, rows: Rows) -> set[Key]: ...

    async def replace(self, key: Key, trace_id: str, seq: int, rows: Rows) -> None: ...

    async def drifted(self, heads: Mapping[Key, int]) -> dict[Key, Drift]: ...

    async def drift_places(self) -> dict[str, int]: ...

    async def put_drift_place(self, walk: str, sequence: int) -> None: ...
