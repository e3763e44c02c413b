"""What tenants spent lately: summed when it is asked for, and kept the longer the longer that took."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from wayline.chassis.concurrency.single_flight import SingleFlight
from wayline.contracts.overview import SpentLately
from wayline.store import Store

SPENT_HOURS: Final = (24, 7 * 24)
REST_FACTOR: Final = 20.0
"""A sum is kept for so many times as long as it took: each reads all jobs of a week, and an open page asks often."""
REST_MAX_S: Final = 30.0
TENANTS_KEPT_MAX: Final = 1_000


class SpentSums:
    """Sums what a tenant spent in the last day and week, for all who ask at the same time or soon after."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, tuple[SpentLately, ...]]] = OrderedDict()
        self._flight: SingleFlight[str, tuple[SpentLately, ...]] = SingleFlight()

    async def of(self, tenant: str) -> tuple[SpentLately, ...]:
        """Return the sums of a tenant, the shortest window first; at most REST_MAX_S old."""
        until, spent = self._kept.get(tenant, (0.0, ()))
        if self._clock() < until:
            return spent
        return await self._flight.fetch(tenant, partial(self._sum, tenant))

    async def _sum(self, tenant: str) -> tuple[SpentLately, ...]:
        began = self._clock()
        async with self._store.tenant(tenant) as conn:
            rows = [(hours, await conn.fetchrow(self._store.sql.spent_lately, tenant, hours)) for hours in SPENT_HOURS]
        spent = tuple(SpentLately(hours=hours, **dict(row)) for hours, row in rows if row is not None)
        ended = self._clock()
        self._kept[tenant] = ended + min(REST_FACTOR * (ended - began), REST_MAX_S), spent
        self._kept.move_to_end(tenant)
        if len(self._kept) > TENANTS_KEPT_MAX:
            self._kept.popitem(last=False)
        return spent
