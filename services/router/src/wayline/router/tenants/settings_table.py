"""What each tenant has changed of its settings. A job reads them in the statement that admits it: none are cached."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.tenant_settings import SettingsChange, SettingsInForce
from wayline.router.tenants.settings_in_force import in_force, read_settings
from wayline.store import Record, Store


class SettingsTable:
    """One row a tenant that has changed something."""

    def __init__(self, store: Store, *, job_budget_usd: Decimal) -> None:
        self._store = store
        self._job_budget_usd = job_budget_usd

    async def get(self, tenant: str) -> SettingsInForce:
        """Return a tenant's settings."""
        return self._in_force(await self._store.fetchrow(tenant, self._store.sql.get_settings, tenant))

    async def change(self, tenant: str, change: SettingsChange) -> SettingsInForce:
        """Change the settings that are named."""
        encoded = change.model_dump(mode="json", exclude_unset=True)
        return self._in_force(await self._store.fetchrow(tenant, self._store.sql.change_settings, tenant, encoded))

    def _in_force(self, row: Record | None) -> SettingsInForce:
        own = read_settings(row["settings"] if row else None)
        return in_force(own, job_budget_usd=self._job_budget_usd, updated_at=row["updated_at"] if row else None)
