"""The index of each tenant's tools, made again only when they have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from wayline.tool_registry.tool_search.index import Entry, ToolIndex

INDEXES_MAX = 256


class ToolIndexes:
    """Keeps the indexes that were asked for last."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[Entry, ...], ToolIndex]] = {}

    async def of(self, tenant: str, entries: Sequence[Entry]) -> ToolIndex:
        """Return an index of a tenant's tools as they are now."""
        now = tuple(entries)
        kept = self._kept.pop(tenant, None)
        # A thousand tools take about half a second: on a thread, because calls are answered meanwhile.
        index = kept[1] if kept is not None and kept[0] == now else await asyncio.to_thread(ToolIndex, now)
        self._kept[tenant] = now, index
        if len(self._kept) > INDEXES_MAX:
            del self._kept[next(iter(self._kept))]
        return index
