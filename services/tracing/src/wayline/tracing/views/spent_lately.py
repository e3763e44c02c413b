"""What tenants spent lately: summed when it is asked for, and kept the longer the longer that took."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Final

from wayline.chassis.concurrency.single_flight import SingleFlight
from wayline.contracts.jobs import Status
from wayline.contracts.overview import SpentLately
from wayline.store import Record, Store

DAY_HOURS: Final = 24
WEEK_HOURS: Final = 7 * 24
REST_FACTOR: Final = 20.0
"""A sum is kept for so many times as long as it took: each reads all jobs of a week, and an open page asks often."""
REST_MAX_S: Final = 30.0
QUICK_S: Final = 0.05
"""A sum that takes no longer is waited for; of a slower one the last is shown, and the next one begun."""
SHOWN_MAX_S: Final = 120.0
"""An older sum is not shown any more."""
TENANTS_KEPT_MAX: Final = 1_000

Sums = tuple[SpentLately, ...]


@dataclass(frozen=True, slots=True)
class _KeptSums:
    sums: Sums
    made_s: float
    took_s: float

    @property
    def rests_until_s(self) -> float:
        return self.made_s + min(REST_FACTOR * self.took_s, REST_MAX_S)


class SpentSums:
    """Sums what a tenant spent in the last day and week, for all who ask at the same time or soon after."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._kept: OrderedDict[str, _KeptSums] = OrderedDict()
        self._flight: SingleFlight[str, Sums] = SingleFlight()

    async def of(self, tenant: str) -> Sums:
        """Return the sums of a tenant, the shortest window first; at most SHOWN_MAX_S old."""
        kept, now_s = self._kept.get(tenant), self._clock()
        if kept is not None and now_s < kept.rests_until_s:
            return kept.sums
        if kept is not None and kept.took_s > QUICK_S and now_s < kept.made_s + SHOWN_MAX_S:
            self._flight.begin(tenant, partial(self._sum, tenant))
            return kept.sums
        return await self._flight.fetch(tenant, partial(self._sum, tenant))

    async def _sum(self, tenant: str) -> Sums:
        began_s = self._clock()
        sql, asked = self._store.sql, (tenant, DAY_HOURS, WEEK_HOURS)
        async with self._store.tenant(tenant) as conn:
            jobs, calls = (
                await conn.fetch(sql.jobs_ended_lately, *asked),
                await conn.fetch(sql.calls_paid_lately, *asked),
            )
        day = _spent(DAY_HOURS, [row for row in jobs if row["is_recent"]], [row for row in calls if row["is_recent"]])
        ended_s = self._clock()
        self._kept[tenant] = _KeptSums((day, _spent(WEEK_HOURS, jobs, calls)), ended_s, ended_s - began_s)
        self._kept.move_to_end(tenant)
        if len(self._kept) > TENANTS_KEPT_MAX:
            self._kept.popitem(last=False)
        return self._kept[tenant].sums


def _spent(hours: int, jobs: Sequence[Record], calls: Sequence[Record]) -> SpentLately:
    ended = Counter[Status]()
    for row in jobs:
        ended[Status(row["status"])] += row["jobs"]
    return SpentLately(
        hours=hours,
        cost_usd=_total(calls, "cost_usd"),
        calls_unknown=sum(row["calls_unknown"] for row in calls),
        ended=dict(ended),
        predicted_usd=_total(jobs, "predicted_usd"),
        actual_usd=_total(jobs, "actual_usd"),
    )


def _total(rows: Sequence[Record], column: str) -> Decimal:
    return sum((row[column] for row in rows), Decimal(0))
