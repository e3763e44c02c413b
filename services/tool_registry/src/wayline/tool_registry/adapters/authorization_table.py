"""Tokens of tenants' servers, and logins under way, in Postgres and encrypted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any

import structlog

from wayline.contracts.errors import Conflict, Reject
from wayline.store import Record, Store
from wayline.tool_registry.secret_keys import CannotOpen, Sealed, SecretKeys

log = structlog.get_logger()

LOGIN_S = 600.0
LOGINS_MAX = 50
"""Of one tenant, under way."""

Secrets = dict[str, Any]


class AuthorizationTable:
    """One row a server that somebody has logged in to, and one a login under way."""

    def __init__(self, store: Store, keys: SecretKeys) -> None:
        self._store = store
        self._sql = store.sql
        self._keys = keys

    async def begin(self, tenant: str, server: str, state: str, login: Secrets) -> None:
        """Keep a login until its state comes back, which is stored as a hash. Raises Conflict."""
        hashed = _hash(state)
        sealed = self._keys.seal(login, tenant=tenant, server=f"{server}/login/{hashed}")
        row = (tenant, hashed, server, sealed.key_id, sealed.data, LOGIN_S, LOGINS_MAX)
        if await self._store.fetchval(tenant, self._sql.begin_login, *row) is None:
            raise Conflict(f"{LOGINS_MAX} logins of this tenant are under way: finish one, or wait ten minutes")

    async def take(self, tenant: str, state: str) -> tuple[str, Secrets]:
        """Return the server and the login that a state belongs to, once. Raises Reject."""
        hashed = _hash(state)
        row = await self._store.fetchrow(tenant, self._sql.take_login, tenant, hashed)
        if row is None or not row["valid"]:
            raise Reject(
                "this login is unknown, over, or was finished before: begin it again", code="invalid_state", status=400
            )
        sealed = Sealed(row["key_id"], row["sealed"])
        return row["server"], self._open(sealed, tenant, f"{row['server']}/login/{hashed}")

    async def put(self, tenant: str, server: str, held: Secrets) -> None:
        """Keep tokens, and have every replica connect with them."""
        sealed = self._seal(tenant, server, held)
        await self._store.fetchval(tenant, self._sql.put_authorization, tenant, server, sealed.key_id, sealed.data)

    async def find(self, tenant: str, server: str) -> Secrets | None:
        """Return the tokens of a server; None: there are none, or they are refused. Raises CannotOpen."""
        return self._usable(tenant, server, await self._store.fetchrow(tenant, self._sql.authorization, tenant, server))

    async def renew(
        self, tenant: str, server: str, refresh: Callable[[Secrets], Awaitable[Secrets | None]]
    ) -> Secrets | None:
        """Renew tokens by `refresh`, one at a time across replicas; what it returns None for is refused for good."""
        async with self._store.tenant(tenant) as conn:
            held = self._usable(tenant, server, await conn.fetchrow(self._sql.lock_authorization, tenant, server))
            if held is None:
                return None
            fresh = await refresh(held)
            if fresh is None:
                await conn.execute(self._sql.refuse_authorization, tenant, server)
            elif fresh is not held:
                sealed = self._seal(tenant, server, fresh)
                await conn.execute(self._sql.renew_authorization, tenant, server, sealed.key_id, sealed.data)
            return fresh

    async def delete(self, tenant: str, server: str) -> Secrets | None:
        """Forget tokens and return them; None: there are none that could be read."""
        row = await self._store.fetchrow(tenant, self._sql.delete_authorization, tenant, server)
        try:
            return None if row is None else self._usable(tenant, server, {**row, "refused": False})
        except CannotOpen:
            return None

    async def seal_again(self) -> int:
        """Encrypt with the newest key what an older one encrypted, and return how many tokens that were."""
        if (newest := self._keys.newest) is None:
            return 0
        async with self._store.system() as conn:
            rows = await conn.fetch(self._sql.authorizations_of_older_keys, newest)
        sealed = 0
        for row in rows:
            tenant, server = row["tenant"], row["server"]
            try:
                fresh = self._seal(
                    tenant, server, self._open(Sealed(row["key_id"], row["sealed"]), tenant, f"{server}/tokens")
                )
            except CannotOpen as error:
                log.warning("tokens stay under their key", tenant=tenant, server=server, why=str(error))
                continue
            values = (tenant, server, row["sealed"], fresh.key_id, fresh.data)
            sealed += await self._store.fetchval(tenant, self._sql.seal_authorization, *values) is not None
        return sealed

    def _usable(self, tenant: str, server: str, row: Record | dict[str, Any] | None) -> Secrets | None:
        if row is None or row["refused"]:
            return None
        return self._open(Sealed(row["key_id"], row["sealed"]), tenant, f"{server}/tokens")

    def _seal(self, tenant: str, server: str, held: Secrets) -> Sealed:
        return self._keys.seal(held, tenant=tenant, server=f"{server}/tokens")

    def _open(self, sealed: Sealed, tenant: str, bound_to: str) -> Secrets:
        return self._keys.open(sealed, tenant=tenant, server=bound_to)


def _hash(state: str) -> str:
    return sha256(state.encode()).hexdigest()
