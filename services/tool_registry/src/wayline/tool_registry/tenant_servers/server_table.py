"""Tenants' servers in Postgres, their secrets encrypted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import structlog

from wayline.contracts.errors import Conflict
from wayline.contracts.server_config import ServerConfig
from wayline.store import Record, Store
from wayline.store.sealing import Sealed
from wayline.tool_registry.secrets.seal_pages import Place, seal_pages
from wayline.tool_registry.secrets.secret_keys import SecretKeys
from wayline.tool_registry.secrets.secret_references import names_of
from wayline.tool_registry.tenant_servers.saved_servers import SavedServer, Secrets, filled

log = structlog.get_logger()


class Revision(NamedTuple):
    """What of a server is read again when it has changed."""

    config: str
    pins: str
    """Of its approved definitions."""


class ServerTable:
    """One row a server."""

    def __init__(self, store: Store, keys: SecretKeys, *, per_tenant_max: int) -> None:
        self._store = store
        self._sql = store.sql
        self._keys = keys
        self._per_tenant_max = per_tenant_max

    @property
    def newest_key(self) -> str | None:
        """Return the id of the key that encrypts; None: there is no key."""
        return self._keys.newest

    async def revisions(self) -> dict[tuple[str, str], Revision]:
        """Return the revision of every enabled server of every tenant, by tenant and name."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._sql.server_revisions)
        return {(row["tenant"], row["name"]): Revision(row["revision"], row["pins"]) for row in rows}

    async def of(self, tenant: str) -> list[SavedServer]:
        """Return a tenant's servers by name."""
        return [_saved(row) for row in await self._store.fetch(tenant, self._sql.servers_of, tenant)]

    async def find(self, tenant: str, name: str) -> SavedServer | None:
        """Return one server of a tenant."""
        row = await self._store.fetchrow(tenant, self._sql.server, tenant, name)
        return None if row is None else _saved(row)

    async def services_of(self, tenant: str) -> dict[str, datetime]:
        """Return when each of a tenant's services on the bus was heard first, by name."""
        rows = await self._store.fetch(tenant, self._sql.services_of, tenant)
        return {row["name"]: row["saved_at"] for row in rows}

    async def put_service(self, tenant: str, name: str) -> str | None:
        """Save a service on the bus and return what kind of server has the name; None: there are too many."""
        return await self._store.fetchval(tenant, self._sql.put_service, tenant, name, self._per_tenant_max)

    def secrets(self, server: SavedServer) -> Secrets:
        """Return a server's secrets. Raises CannotOpen."""
        if server.sealed is None:
            return {}
        return self._keys.open(server.sealed, tenant=server.tenant, owner=server.name)

    def whole(self, server: SavedServer) -> ServerConfig:
        """Return a server's configuration with its secrets. Raises CannotOpen."""
        return filled(server.config, self.secrets(server))

    async def put(
        self, tenant: str, name: str, config: ServerConfig, secrets: Secrets, *, enabled: bool | None, shown: str | None
    ) -> None:
        """Save a server, `config` with masks; `enabled` None: as it is, a new one enabled; `shown`: see `Pins`.

        Raises Conflict where the tenant has as many as it may.
        """
        sealed = self._keys.seal(secrets, tenant=tenant, owner=name) if secrets else None
        row = (config.model_dump_json(exclude_unset=True), sealed and sealed.key_id, sealed and sealed.data)
        most, refers_to = self._per_tenant_max, sorted(names_of(filled(config, secrets)))
        more = (most, enabled, shown, refers_to)
        if await self._store.fetchval(tenant, self._sql.put_server, tenant, name, *row, *more) is None:
            raise Conflict(
                f"this tenant has {most} servers, which is as many as it may have: remove one first, or let "
                "the operator raise WAYLINE_TOOL_REGISTRY_SERVERS_PER_TENANT_MAX"
            )

    async def delete(self, tenant: str, name: str) -> bool:
        """Delete a server with its secrets; return False where there is none."""
        return await self._store.fetchval(tenant, self._sql.delete_server, tenant, name) is not None

    async def enable(self, tenant: str, name: str, *, enabled: bool) -> bool:
        """Enable or disable a server; return False where there is none."""
        return await self._store.fetchval(tenant, self._sql.enable_server, tenant, name, enabled) is not None

    async def seal_again(self, *, at_most: int) -> int:
        """Encrypt with the newest key some of what an older one encrypted, and return how many servers that were."""
        if not (older := self._keys.older):
            return 0

        async def read(rows: int, after: Place) -> Sequence[SavedServer]:
            async with self._store.system() as conn:
                return [_saved(row) for row in await conn.fetch(self._sql.servers_of_older_keys, older, rows, *after)]

        async def seal(server: SavedServer) -> bool:
            fresh = self._keys.seal(self.secrets(server), tenant=server.tenant, owner=server.name)
            assert server.sealed is not None
            row = (server.tenant, server.name, server.sealed.data, fresh.key_id, fresh.data)
            # Unchanged where another replica was faster, or the server was saved meanwhile.
            return await self._store.fetchval(server.tenant, self._sql.seal_server, *row) is not None

        places = {"place_of": lambda server: (server.tenant, server.name), "first": ("", "")}
        sealed = await seal_pages(read, seal, **places, at_most=at_most)
        if sealed:
            log.info("secrets are encrypted with the newest key", key=self._keys.newest, servers=sealed)
        return sealed


def _saved(row: Record) -> SavedServer:
    return SavedServer(
        tenant=row["tenant"],
        name=row["name"],
        # A newer build may have written fields that this one does not know.
        config=ServerConfig.model_validate_json(row["config"], extra="ignore"),
        sealed=None if row["sealed"] is None else Sealed(row["key_id"], row["sealed"]),
        enabled=row["enabled"],
        revision=row["revision"],
        saved_at=row["saved_at"],
    )
