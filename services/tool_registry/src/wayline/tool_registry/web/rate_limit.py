"""How many calls each tenant may make in a minute, in this process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

TENANTS_MAX = 10_000


class RateLimit:
    """A bucket of calls for each tenant, filled evenly."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Calls left, and when that was so; the tenant that called last at the end."""

    def take(self, tenant: str) -> float:
        """Take a call. Return 0, or the seconds until there is one."""
        now = self._clock()
        left, at = self._buckets.pop(tenant, (float(self._per_minute), now))
        left = min(self._per_minute, left + (now - at) * self._per_minute / 60)
        wait_s = 0.0 if left >= 1 else (1 - left) * 60 / self._per_minute
        self._buckets[tenant] = (left if wait_s else left - 1, now)
        if len(self._buckets) > TENANTS_MAX:
            self._buckets.popitem(last=False)
        return wait_s
