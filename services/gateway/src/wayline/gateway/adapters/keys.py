"""API keys in Postgres, remembered for a few seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from wayline.gateway.errors import Unauthorized
from wayline.gateway.keys import SCOPES, Caller, Scope, StoredKey, key_id, mint, opens
from wayline.store import PostgresUnavailable, Store

FRESH_S = 5.0
"""How long a revoked key may still work."""
STALE_MAX_S = 300.0
"""While Postgres is away nobody can revoke a key either: what is remembered stays good this long."""
REMEMBERED_MAX = 10_000

T = TypeVar("T")


@dataclass
class _Remembered(Generic[T]):
    value: T
    at: float


class Keys:
    """Who a key belongs to, and whether keys are needed at all."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys: dict[str, _Remembered[StoredKey | None]] = {}
        self._any: _Remembered[bool] | None = None

    async def any(self) -> bool:
        """Whether a key was ever created: from then on every request must show one."""
        known = self._any
        if known is not None and (known.value or _age(known) < FRESH_S):
            return known.value
        try:
            async with self._store.system() as conn:
                found = bool(await conn.fetchval(self._store.sql.any_key))
        except PostgresUnavailable:
            if known is None or _age(known) > STALE_MAX_S:
                raise
            return known.value
        self._any = _Remembered(found, time.monotonic())
        return found

    async def caller(self, secret: str) -> Caller:
        """Who shows this key. Raises Unauthorized for one that is unknown, expired or revoked."""
        wanted = key_id(secret)
        key = await self._find(wanted) if wanted else None
        if key is None or not opens(key, secret):
            raise Unauthorized("this API key is not valid: it is unknown, expired or revoked")
        return key.caller

    async def _find(self, wanted: str) -> StoredKey | None:
        known = self._keys.get(wanted)
        if known is not None and _age(known) < FRESH_S:
            return known.value
        try:
            async with self._store.system() as conn:
                row = await conn.fetchrow(self._store.sql.find_key, wanted)
        except PostgresUnavailable:
            if known is None or _age(known) > STALE_MAX_S:
                raise
            return known.value
        key = None
        if row is not None:
            caller = Caller(row["tenant"], row["name"], frozenset(row["scopes"]))
            key = StoredKey(row["id"], row["hash"], caller)
        if len(self._keys) >= REMEMBERED_MAX:
            self._keys.clear()
        self._keys[wanted] = _Remembered(key, time.monotonic())
        return key


async def create_key(
    store: Store,
    tenant: str,
    name: str,
    *,
    scopes: tuple[Scope, ...] = SCOPES,
    expires_at: datetime | None = None,
) -> str:
    """Make a key for a tenant; the answer is the key itself, which nothing can show again."""
    key = mint()
    await store.execute(tenant, store.sql.add_key, key.id, key.hash, tenant, name, list(scopes), expires_at)
    return key.secret


async def revoke_key(store: Store, tenant: str, secret_or_id: str) -> bool:
    """Take a key back; it stops working within seconds. False when the tenant has no such key."""
    wanted = key_id(secret_or_id) or secret_or_id
    return await store.execute(tenant, store.sql.revoke_key, wanted, tenant) == "UPDATE 1"


def _age(remembered: _Remembered[Any]) -> float:
    return time.monotonic() - remembered.at
