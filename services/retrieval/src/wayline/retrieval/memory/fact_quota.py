"""Whether a tenant may have more facts: counted beside its saves, since counting takes longer than one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from wayline.chassis.concurrency.single_flight import SingleFlight
from wayline.retrieval.memory.fact_table import FactTable
from wayline.retrieval.memory.memory_errors import MemoriesFull

COUNTED_EVERY_S = 30.0
"""How often the facts of a tenant that saves are counted."""


@dataclass(slots=True)
class FactQuota:
    """Refuses saves of a tenant that has as many facts as it may."""

    facts: FactTable
    per_tenant_max: int
    clock: Callable[[], float] = time.monotonic
    _found: dict[str, float] = field(default_factory=dict)
    """When each tenant was last found to have room."""
    _counting: SingleFlight[str, bool] = field(default_factory=SingleFlight)

    async def check(self, tenant: str) -> None:
        """Raise MemoriesFull where there is no room; only who had none, or is new here, waits for the count."""
        found = self._found.get(tenant)
        if found is None:
            if not await self._counting.fetch(tenant, lambda: self._count(tenant)):
                raise MemoriesFull(most=self.per_tenant_max)
        elif self.clock() - found > COUNTED_EVERY_S:
            self._counting.begin(tenant, lambda: self._count(tenant))

    async def _count(self, tenant: str) -> bool:
        has_room = await self.facts.has_room(tenant, self.per_tenant_max)
        if has_room:
            self._found[tenant] = self.clock()
        else:
            self._found.pop(tenant, None)
        return has_room
