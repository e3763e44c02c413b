"""The limits of tenants in Postgres."""

from __future__ import annotations

from wayline.gateway.shapes.limits import LimitsBody, read_limits
from wayline.store import Store


class RateLimits:
    """What operators have set for tenants; the gateway reads it together with an API key."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, tenant: str) -> LimitsBody | None:
        """Return the limits of a tenant, or None where none were set."""
        return read_limits(await self._store.fetchval(tenant, self._store.sql.get_limits, tenant))

    async def put(self, tenant: str, limits: LimitsBody) -> None:
        """Save the limits of a tenant."""
        body = limits.model_dump(mode="json", exclude_unset=True)
        await self._store.execute(tenant, self._store.sql.put_limits, tenant, body)

    async def delete(self, tenant: str) -> bool:
        """Delete the limits of a tenant; False where there are none."""
        return await self._store.fetchval(tenant, self._store.sql.delete_limits, tenant) is not None
