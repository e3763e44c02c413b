"""What the registry does with messages about secrets of tenants."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from wayline.contracts.errors import Conflict
from wayline.contracts.tenant_secrets import (
    DeleteSecret,
    ListSecrets,
    PutSecret,
    RotateSecrets,
    SecretDeleted,
    SecretList,
    SecretRotation,
    SecretView,
)
from wayline.tool_registry.secrets.sealed_rows import SealedRows
from wayline.tool_registry.secrets.secret_keys import require_key
from wayline.tool_registry.secrets.secret_table import SecretTable


@dataclass(frozen=True)
class SecretHandlers:
    """One coroutine a message."""

    table: SecretTable
    sealed: SealedRows
    newest_key: str | None
    changed: Callable[[str], Awaitable[None]]
    """Has every replica connect anew to the servers of a tenant that have changed."""

    async def put(self, ask: PutSecret) -> SecretView:
        """Store a secret, and connect anew to the servers that refer to it."""
        require_key({"secrets": {}}, self.newest_key)
        view = await self.table.put(ask.tenant, ask.name, ask.value.get_secret_value())
        if view.used_by:
            await self.changed(ask.tenant)
        return view

    async def list(self, ask: ListSecrets) -> SecretList:
        """Return the names of a tenant's secrets."""
        return SecretList(secrets=await self.table.of(ask.tenant))

    async def rotate(self, _: RotateSecrets) -> SecretRotation:
        """Encrypt a batch of all secrets with the newest key."""
        return await self.sealed.rotate()

    async def delete(self, ask: DeleteSecret) -> SecretDeleted:
        """Delete a secret. Raises Conflict where a server refers to it."""
        if await self.table.delete(ask.tenant, ask.name):
            return SecretDeleted(deleted=True)
        used_by = next((one.used_by for one in await self.table.of(ask.tenant) if one.name == ask.name), ())
        if used_by:
            raise Conflict(
                f"the secret {ask.name} is used by {', '.join(used_by)}: change or remove those servers first"
            )
        return SecretDeleted(deleted=False)
