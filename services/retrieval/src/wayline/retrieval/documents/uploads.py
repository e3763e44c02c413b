"""The rows of uploads: what each tenant has in the object store of uploads on the bus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wayline.chassis.topology import DAY_S
from wayline.store import Store

KEPT_S = 30 * DAY_S
"""How long the object store keeps anything."""
OBJECT_BYTES = 1024
"""About what an object takes in its stream beside its content: its metadata, subjects, and headers of its chunks."""


class UploadTable:
    """Counts the bytes of each tenant's objects, up to a share."""

    def __init__(self, store: Store, *, per_tenant_max_bytes: int) -> None:
        self._store = store
        self._sql = store.sql
        self.per_tenant_max_bytes = per_tenant_max_bytes

    async def reserve(self, tenant: str, name: str, size: int) -> bool:
        """Count an object before it is stored; False when the tenant has no room for it."""
        async with self._store.tenant(tenant) as conn:
            await conn.execute(self._sql.lock_uploads, tenant)
            await conn.execute(self._sql.forget_expired_uploads, tenant, float(KEPT_S))
            reserved = await conn.fetchval(
                self._sql.reserve_upload, tenant, name, size + OBJECT_BYTES, self.per_tenant_max_bytes
            )
        return reserved is not None

    async def note(self, tenant: str, stored: Mapping[str, int]) -> None:
        """Count objects that are stored already; those that are counted stay as they are."""
        sizes = [size + OBJECT_BYTES for size in stored.values()]
        await self._store.execute(tenant, self._sql.note_uploads, tenant, list(stored), sizes)

    async def forget(self, tenant: str, names: Sequence[str]) -> None:
        """Count objects no more: they are deleted."""
        await self._store.execute(tenant, self._sql.forget_uploads, tenant, list(names))
