"""Names that tenants choose as a metric's labels: a label must not have any number of values."""

from __future__ import annotations

from collections import Counter
from typing import Final

OTHER: Final = "other"
NAME_MAX_CHARS: Final = 128
"""A longer name is `other`."""


class BoundedLabels:
    """The first names stand for themselves, so many of each tenant; later ones are `other` until the process ends."""

    def __init__(self, *, most: int, per_tenant_max: int | None = None) -> None:
        self._most = most
        self._per_tenant_max = most if per_tenant_max is None else per_tenant_max
        self._own: set[str] = set()
        self._brought: Counter[str] = Counter()

    def __call__(self, name: str, tenant: str = "") -> str:
        """Return the label of a name that a job of this tenant brings; without a tenant nobody's share is counted."""
        if name in self._own:
            return name
        full = len(self._own) >= self._most or (tenant and self._brought[tenant] >= self._per_tenant_max)
        if full or len(name) > NAME_MAX_CHARS:
            return OTHER
        self._own.add(name)
        self._brought[tenant] += 1
        return name
