"""The index of each tenant's tools: made once when they have changed, while searches use the one before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from wayline.tool_registry.tool_search.index import Entry, ToolIndex

INDEXES_MAX = 256
FRESH_WITHIN_S = 0.5
"""How long a search waits for the index of tools that have changed."""

Kept = tuple[tuple[Entry, ...], ToolIndex]


class ToolIndexes:
    """Keeps the indexes that were asked for last."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}
        self._making: dict[str, asyncio.Task[ToolIndex]] = {}

    async def of(self, tenant: str, entries: Sequence[Entry]) -> ToolIndex:
        """Return an index of a tenant's tools; that of before, where there is one and to make another takes long."""
        making = self.prepare(tenant, entries)
        # Held here: other tenants' indexes may take its place while this waits.
        before = self._kept.get(tenant)
        if making is not None:
            # Not cancelled with a search: others wait for it too.
            await asyncio.wait({making}, timeout=None if before is None else FRESH_WITHIN_S)
            if before is None or making.done():
                return making.result()
        assert before is not None
        return before[1]

    def prepare(self, tenant: str, entries: Sequence[Entry]) -> asyncio.Task[ToolIndex] | None:
        """Begin to make the index of tools that have changed; one at a time for each tenant. None: it is there."""
        now = tuple(entries)
        kept = self._kept.get(tenant)
        if kept is not None and kept[0] == now:
            self._kept[tenant] = self._kept.pop(tenant)
            return None
        making = self._making.get(tenant)
        if making is None:
            making = asyncio.create_task(self._make(tenant, now), name=f"index of the tools of {tenant}")
            self._making[tenant] = making
            making.add_done_callback(lambda _: self._making.pop(tenant, None))
        return making

    async def _make(self, tenant: str, entries: tuple[Entry, ...]) -> ToolIndex:
        before = self._kept.get(tenant)
        # A thousand tools take about half a second: on a thread, because calls are answered meanwhile.
        index = await asyncio.to_thread(ToolIndex, entries, before=None if before is None else before[1])
        self._kept[tenant] = entries, index
        if len(self._kept) > INDEXES_MAX:
            del self._kept[next(iter(self._kept))]
        return index
