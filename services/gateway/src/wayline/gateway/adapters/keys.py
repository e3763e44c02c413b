"""API keys in Postgres, remembered for a few seconds."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from wayline.contracts.errors import Conflict, NotFound
from wayline.gateway.errors import Unauthorized
from wayline.gateway.keys import SCOPES, Caller, Scope, StoredKey, digest, key_id, mint, opens
from wayline.gateway.shapes.keys import Key, KeyCreated
from wayline.gateway.shapes.limits import LimitsBody, MeterRates, rates_of, read_key_limits, read_limits
from wayline.store import PostgresUnavailable, Record, Store

FRESH_S = 5.0
"""How long a revoked key may still work."""
STALE_MAX_S = 300.0
"""How long a cached key is accepted while Postgres is away: meanwhile no key can be revoked either."""
REMEMBERED_MAX = 10_000

NO_LIMITS = LimitsBody()

T = TypeVar("T")


@dataclass
class _Remembered(Generic[T]):
    value: T
    at: float


class Keys:
    """Who a key belongs to, and whether keys are needed at all."""

    def __init__(self, store: Store, *, defaults: LimitsBody = NO_LIMITS) -> None:
        self._store = store
        self._defaults = defaults
        self._keys: dict[str, _Remembered[StoredKey | None]] = {}
        self._any: _Remembered[bool] | None = None

    async def any(self) -> bool:
        """Return whether a key was ever created: from then on every request must show one."""
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
        """Return who shows this key. Raises Unauthorized for one that is unknown, expired or revoked."""
        wanted = key_id(secret)
        key = await self._find(wanted) if wanted else None
        if key is None or not opens(key, secret):
            raise Unauthorized("this API key is not valid: it is unknown, expired or revoked")
        if key.is_unused:
            await self._note_use(key)
        return key.caller

    async def of(self, wanted: str) -> Caller | None:
        """Return whose key has this id; None for one that is unknown, expired or revoked."""
        key = await self._find(wanted)
        return None if key is None else key.caller

    async def _note_use(self, key: StoredKey) -> None:
        """Write down that a key is used, at most once a minute and never at the cost of its request."""
        self._keys[key.id] = _Remembered(replace(key, is_unused=False), self._keys[key.id].at)
        with suppress(PostgresUnavailable):
            await self._store.execute(key.caller.tenant, self._store.sql.use_key, key.id)

    async def any_operator(self) -> bool:
        """Return whether some valid key, the machine's own included, may administer tenants and keys."""
        async with self._store.system() as conn:
            return bool(await conn.fetchval(self._store.sql.any_operator_key))

    async def create(
        self,
        tenant: str,
        name: str,
        *,
        scopes: tuple[Scope, ...],
        expires_at: datetime | None,
        user_id: str | None,
        limits: MeterRates | None = None,
        most: int,
    ) -> KeyCreated:
        """Make a key for a tenant. Raises Conflict for a tenant that has `most` valid keys."""
        if await self._store.fetchval(tenant, self._store.sql.count_keys, tenant) >= most:
            raise Conflict(
                f"tenant {tenant!r} has {most} valid keys: revoke one, or raise WAYLINE_GATEWAY_KEYS_MAX",
                code="too_many_keys",
            )
        unique = tuple(dict.fromkeys(scopes))
        secret = await create_key(
            self._store, tenant, name, scopes=unique, expires_at=expires_at, user_id=user_id, limits=limits
        )
        # Here the door is closed at once, elsewhere within FRESH_S.
        self._any = _Remembered(True, time.monotonic())
        row = await self._store.fetchrow(tenant, self._store.sql.get_key, key_id(secret))
        assert row is not None
        return KeyCreated(**_shown(row).model_dump(), key=secret)

    async def listed(
        self,
        tenant: str,
        *,
        revoked: bool,
        limit: int,
        after: tuple[datetime | None, str | None] = (None, None),
    ) -> list[Key]:
        """List a tenant's keys, newest first; with `revoked` also those that no longer work. `after`: behind this."""
        rows = await self._store.fetch(tenant, self._store.sql.list_keys, tenant, revoked, limit, *after)
        return [_shown(row) for row in rows]

    async def get(self, wanted: str) -> Key | None:
        """Find one key of any tenant."""
        async with self._store.system() as conn:
            row = await conn.fetchrow(self._store.sql.get_key, wanted)
        return None if row is None else _shown(row)

    async def change(self, tenant: str, wanted: str, *, name: str, limits: MeterRates | None) -> Key:
        """Change a key's name and limits. Raises NotFound."""
        stored = limits and limits.model_dump(mode="json", exclude_unset=True)
        await self._store.execute(tenant, self._store.sql.change_key, wanted, tenant, name, stored)
        self._keys.pop(wanted, None)
        found = await self.get(wanted)
        if found is None:
            raise NotFound("API key", wanted)
        return found

    def forget_all(self) -> None:
        """Read every key anew: this process has just changed what holds for many."""
        self._keys.clear()

    async def revoke(self, tenant: str, wanted: str) -> bool:
        """Take a key back: here at once, elsewhere within FRESH_S. False when it did not work any more."""
        revoked = await revoke_key(self._store, tenant, wanted)
        self._keys.pop(wanted, None)
        return revoked

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
            caller = Caller(
                row["tenant"],
                row["name"],
                frozenset(row["scopes"]),
                key_id=row["id"],
                user_id=row["user_id"],
                rates=rates_of(self._defaults, read_limits(row["tenant_limits"]), read_key_limits(row["limits"])),
            )
            key = StoredKey(row["id"], row["hash"], caller, is_unused=row["is_unused"])
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
    user_id: str | None = None,
    limits: MeterRates | None = None,
) -> str:
    """Make a key for a tenant; the answer is the key itself, which nothing can show again."""
    key = mint()
    stored = limits and limits.model_dump(mode="json", exclude_unset=True)
    row = (key.id, key.hash, tenant, name, list(scopes), expires_at, user_id, stored)
    await store.execute(tenant, store.sql.add_key, *row)
    return key.secret


async def revoke_key(store: Store, tenant: str, secret_or_id: str) -> bool:
    """Take a key back; it stops working within seconds. False when the tenant has no such key."""
    wanted = key_id(secret_or_id) or secret_or_id
    return await store.execute(tenant, store.sql.revoke_key, wanted, tenant) == "UPDATE 1"


async def keep_machine_key(store: Store, tenant: str, secret: str) -> None:
    """Let the command line of this machine use `secret`; the same one again changes nothing."""
    wanted = key_id(secret)
    if wanted is None:
        raise ValueError("this is no API key")
    await store.execute(tenant, store.sql.keep_machine_key, wanted, digest(secret), tenant, list(SCOPES))


def _shown(row: Record) -> Key:
    return Key(**{**dict(row), "limits": read_key_limits(row["limits"])}, prefix=f"wl_{row['id']}_")


def _age(remembered: _Remembered[Any]) -> float:
    return time.monotonic() - remembered.at
