"""Everything that is stored encrypted, together: which keys it needs, and encrypting it with the newest one."""

from __future__ import annotations

from typing import Protocol

from wayline.contracts.tenant_secrets import SecretRotation
from wayline.store import Store
from wayline.tool_registry.secrets.secret_keys import SecretKeys

BATCH_ROWS = 500
"""Of each table, encrypted anew before the progress is told."""
BATCHES_MAX = 1_000
"""In one round of the upkeep."""


class SealedTable(Protocol):
    """A table with rows that are stored encrypted."""

    async def seal_again(self, *, at_most: int) -> int:
        """Encrypt with the newest key some of what an older one encrypted, and return how many rows that were."""
        ...


class SealedRows:
    """Rows of secrets, of servers with theirs, and of tokens."""

    def __init__(
        self,
        store: Store,
        keys: SecretKeys,
        *,
        servers: SealedTable,
        authorizations: SealedTable,
        secrets: SealedTable,
    ) -> None:
        self._store = store
        self._keys = keys
        self._tables = (servers, authorizations, secrets)

    async def rotate(self) -> SecretRotation:
        """Encrypt a batch with the newest key, and return what still needs another one."""
        sealed = sum([await table.seal_again(at_most=BATCH_ROWS) for table in self._tables])
        newest = self._keys.newest
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.rows_of_older_keys, newest or "")
        left = {row["key_id"]: row["rows"] for row in rows}
        unknown = tuple(sorted(left.keys() - self._keys.keys.keys()))
        return SecretRotation(newest=newest, encrypted=sealed, left=left, unknown=unknown)

    async def seal_again(self) -> None:
        """Encrypt everything with the newest key that another one encrypted, and that can be read."""
        for _ in range(BATCHES_MAX):
            if not sum([await table.seal_again(at_most=BATCH_ROWS) for table in self._tables]):
                return
