"""Finds the tenant of a trace: an exported span rarely names one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from wayline.tracing.tables import Tables

TENANTS_MAX = 50_000


class TraceTenants:
    """The tenants of the traces met last, and of any other trace whose job is in the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._tenants: OrderedDict[str, str] = OrderedDict()

    def learn(self, trace_id: str, tenant: str) -> None:
        self._tenants[trace_id] = tenant
        if len(self._tenants) > TENANTS_MAX:
            self._tenants.popitem(last=False)

    async def find(self, trace_ids: Iterable[str]) -> dict[str, str]:
        """Return the tenants of those traces that are a job's."""
        wanted = set(trace_ids)
        known = {trace_id: self._tenants[trace_id] for trace_id in wanted if trace_id in self._tenants}
        missing = wanted - known.keys()
        if missing:
            found = await self._tables.tenants(missing)
            for trace_id, tenant in found.items():
                self.learn(trace_id, tenant)
            known |= found
        return known
