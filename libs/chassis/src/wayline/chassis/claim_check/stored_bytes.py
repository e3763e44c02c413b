"""The bytes that this process has stored for each tenant in the job logs and in PAYLOADS, until they are reported."""

from __future__ import annotations

import time

OVER_FRESH_S = 30.0
"""How long an answer "beyond its share" counts: for a tenant that stores nothing more, no new one comes."""


class StoredBytes:
    """Counts the bytes of each tenant that are not reported yet."""

    def __init__(self) -> None:
        self._waiting: dict[str, int] = {}
        self.total = 0
        """All bytes that were ever counted here."""
        self._over: dict[str, float] = {}

    def note(self, tenant: str, size: int) -> None:
        """Count bytes that the bus has stored."""
        self.total += size
        self._waiting[tenant] = self._waiting.get(tenant, 0) + size

    def of(self, tenant: str) -> int:
        """Return the bytes of a tenant that are not taken yet."""
        return self._waiting.get(tenant, 0)

    def take(self, *, at_least: int = 1) -> dict[str, int]:
        """Return the tenants with so many bytes, and forget these bytes here."""
        taken = {tenant: size for tenant, size in self._waiting.items() if size >= at_least}
        for tenant in taken:
            del self._waiting[tenant]
        return taken

    def set_over(self, tenant: str, over: bool) -> None:
        """Remember whether the router calls a tenant beyond its share."""
        self._over.pop(tenant, None)
        if over:
            self._over[tenant] = time.monotonic() + OVER_FRESH_S

    def is_over(self, tenant: str) -> bool:
        """Return whether a tenant is so far beyond its share that its running jobs must end."""
        return bool(self._over) and self._over.get(tenant, 0.0) > time.monotonic()
