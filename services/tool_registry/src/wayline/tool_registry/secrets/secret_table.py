"""Secrets of tenants by name, in Postgres and encrypted."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import structlog

from wayline.contracts.errors import Conflict
from wayline.contracts.tenant_secrets import SecretView
from wayline.store import Record, Store
from wayline.store.sealing import Sealed
from wayline.tool_registry.secrets.seal_pages import Place, seal_pages
from wayline.tool_registry.secrets.secret_keys import SecretKeys

log = structlog.get_logger()

SECRETS_MAX = 500
"""Of one tenant."""
VALUE = "value"


class SecretTable:
    """One row a secret."""

    def __init__(self, store: Store, keys: SecretKeys) -> None:
        self._store = store
        self._sql = store.sql
        self._keys = keys

    async def put(self, tenant: str, name: str, value: str) -> SecretView:
        """Store a value, and have the servers that refer to it connected anew. Raises Conflict."""
        sealed = self._seal(tenant, name, value)
        row = await self._store.fetchrow(
            tenant, self._sql.put_secret, tenant, name, sealed.key_id, sealed.data, SECRETS_MAX
        )
        if row is None:
            raise Conflict(f"this tenant has {SECRETS_MAX} secrets, which is as many as it may have: delete one first")
        return _view(row)

    async def of(self, tenant: str) -> tuple[SecretView, ...]:
        """Return the names of a tenant's secrets, and who refers to them."""
        return tuple(_view(row) for row in await self._store.fetch(tenant, self._sql.secrets_of, tenant))

    async def missing(self, tenant: str, names: Collection[str]) -> list[str]:
        """Return those of some names that no secret has."""
        rows = await self._store.fetch(tenant, self._sql.secret_names, tenant, sorted(names)) if names else []
        return sorted(set(names) - {row["name"] for row in rows})

    async def values(self, tenant: str, names: Collection[str]) -> dict[str, str]:
        """Return the values of those of some secrets that there are. Raises CannotOpen."""
        rows = await self._store.fetch(tenant, self._sql.secret_values, tenant, sorted(names))
        return {row["name"]: self._open(tenant, row) for row in rows}

    async def delete(self, tenant: str, name: str) -> bool:
        """Delete a secret; return False where there is none, or a server refers to it."""
        return await self._store.fetchval(tenant, self._sql.delete_secret, tenant, name) is not None

    async def seal_again(self, *, at_most: int) -> int:
        """Encrypt with the newest key some of what an older one encrypted, and return how many secrets that were."""
        if not (older := self._keys.older):
            return 0

        async def read(rows: int, after: Place) -> Sequence[Record]:
            async with self._store.system() as conn:
                return await conn.fetch(self._sql.secrets_of_older_keys, older, rows, *after)

        async def seal(row: Record) -> bool:
            tenant, name = row["tenant"], row["name"]
            fresh = self._seal(tenant, name, self._open(tenant, row))
            values = (tenant, name, row["sealed"], fresh.key_id, fresh.data)
            return await self._store.fetchval(tenant, self._sql.seal_secret, *values) is not None

        return await seal_pages(read, seal, lambda row: (row["tenant"], row["name"]), first=("", ""), at_most=at_most)

    def _seal(self, tenant: str, name: str, value: str) -> Sealed:
        return self._keys.seal({VALUE: value}, tenant=tenant, owner=_bound_to(name))

    def _open(self, tenant: str, row: Record) -> str:
        sealed = Sealed(row["key_id"], row["sealed"])
        return str(self._keys.open(sealed, tenant=tenant, owner=_bound_to(row["name"]))[VALUE])


def _bound_to(name: str) -> str:
    """Return what a value is sealed for: no server has such a name."""
    return f"/secret/{name}"


def _view(row: Record) -> SecretView:
    return SecretView(name=row["name"], saved_at=row["saved_at"], used_by=tuple(row["used_by"]))
