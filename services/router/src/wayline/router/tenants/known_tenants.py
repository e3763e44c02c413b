"""Which tenants there are and which of them may begin jobs, believed for a few seconds."""

from __future__ import annotations

import time

from wayline.chassis.concurrency.single_flight import SingleFlight
from wayline.contracts.errors import NotFound, Reject
from wayline.store import Store, TenantInvalid

KNOWN_MAX = 10_000
"""Tenants remembered at once."""


class KnownTenants:
    """Asked for each message; only a yes is remembered."""

    def __init__(self, store: Store, *, fresh_s: float) -> None:
        self._store = store
        self._fresh_s = fresh_s
        self._known: dict[str, float] = {}
        self._asks = SingleFlight[str, bool | None]()

    async def is_tenant(self, tenant: str) -> bool:
        """Return whether there is such a tenant, disabled or not."""
        return await self._is_enabled(tenant) is not None

    async def require(self, tenant: str) -> None:
        """Pass for a tenant that there is, disabled or not. Raises NotFound."""
        if not await self.is_tenant(tenant):
            raise NotFound("tenant", tenant)

    async def require_enabled(self, tenant: str) -> None:
        """Pass for a tenant whose jobs are accepted; a yes is believed for a few seconds. Raises Reject."""
        enabled = await self._is_enabled(tenant)
        if enabled is None:
            raise Reject(
                f"no tenant {tenant!r}: create it with `wayline tenants create {tenant}`",
                code="unknown_tenant",
                status=404,
            )
        if not enabled:
            raise Reject(
                f"tenant {tenant!r} is disabled: `wayline tenants enable {tenant}` accepts its jobs again",
                code="tenant_disabled",
                status=403,
            )

    async def _is_enabled(self, tenant: str) -> bool | None:
        """Return whether the tenant is enabled; None: there is no such tenant."""
        if self._known.get(tenant, 0) > time.monotonic():
            return True
        shared = self._asks.is_under_way(tenant)
        enabled = await self._asks.fetch(tenant, lambda: self._ask_if_enabled(tenant))
        # A no to an earlier question may be older than the tenant.
        return enabled if enabled or not shared else await self._ask_if_enabled(tenant)

    async def _ask_if_enabled(self, tenant: str) -> bool | None:
        try:
            enabled = await self._store.fetchval(tenant, self._store.sql.tenant_is_enabled, tenant)
        except TenantInvalid:
            # No tenant can be called so: as unknown as any other.
            return None
        if enabled:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[tenant] = time.monotonic() + self._fresh_s
        return enabled
