"""Tenants in Postgres."""

from __future__ import annotations

from wayline.contracts.agents import AgentConfig
from wayline.contracts.tenants import Tenant
from wayline.router.tenants.settings_in_force import inherited_when_bundled
from wayline.store import Store, TenantInvalid


class TenantTable:
    """One row a tenant; None is returned for one that there is not."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def count(self) -> int:
        """Return how many tenants there are."""
        async with self._store.system() as conn:
            return await conn.fetchval(self._store.sql.count_tenants)

    async def create(self, tenant: str, agents: dict[str, AgentConfig]) -> Tenant | None:
        """Create a tenant together with its agents; None: there is one of this name."""
        async with self._store.tenant(tenant) as conn:
            row = await conn.fetchrow(self._store.sql.create_tenant, tenant)
            if row is None:
                return None
            for name, config in agents.items():
                await conn.execute(
                    self._store.sql.seed_agent, name, config.model_dump(mode="json"), [*inherited_when_bundled(config)]
                )
        return Tenant(**dict(row))

    async def get(self, tenant: str) -> Tenant | None:
        """Return one tenant."""
        return await self._one(tenant, self._store.sql.get_tenant)

    async def list(self, *, after: str, limit: int) -> list[Tenant]:
        """Return tenants by name, those behind a name."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.list_tenants, after, limit)
        return [Tenant(**dict(row)) for row in rows]

    async def disable(self, tenant: str, reason: str) -> Tenant | None:
        """Disable a tenant; one that is disabled keeps its date and gets the new reason."""
        return await self._one(tenant, self._store.sql.disable_tenant, reason)

    async def enable(self, tenant: str) -> Tenant | None:
        """Enable a tenant."""
        return await self._one(tenant, self._store.sql.enable_tenant)

    async def set_weight(self, tenant: str, weight: int) -> Tenant | None:
        """Set what a tenant's jobs weigh."""
        return await self._one(tenant, self._store.sql.set_tenant_weight, weight)

    async def _one(self, tenant: str, sql: str, *args: str | int) -> Tenant | None:
        try:
            row = await self._store.fetchrow(tenant, sql, tenant, *args)
        except TenantInvalid:
            # No tenant can be called so: as unknown as any other.
            return None
        return None if row is None else Tenant(**dict(row))
