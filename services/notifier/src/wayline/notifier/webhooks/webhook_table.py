"""Webhooks in Postgres: one row each, with their secrets encrypted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

import orjson
import structlog

from wayline.contracts.errors import Conflict, NotFound, Reject
from wayline.contracts.webhooks import EVENT_TYPES, JOBS, Disabled, SavedWebhook, Webhook, WebhookConfig, WebhookList
from wayline.notifier.webhooks.signing import new_secret
from wayline.store import Connection, Record, Store
from wayline.store.sealing import CannotOpen, Sealed, SealingKeys

log = structlog.get_logger()

COUNTED_MAX = 10_000
"""Deliveries that are counted for a view: of more, so many."""
BOTH_SIGN_FOR = timedelta(days=1)
"""How long the secret before a rotation goes on to sign."""
SEALED_AT_ONCE = 100

Clock = Callable[[], datetime]


@dataclass(frozen=True)
class WebhookTable:
    """The rows of webhooks."""

    store: Store
    keys: SealingKeys
    clock: Clock
    webhooks_max: int
    """Of one tenant."""

    async def put(self, tenant: str, name: str, config: WebhookConfig, *, create: bool) -> SavedWebhook:
        """Save a webhook; a new one gets a secret. Raises Conflict, and Reject where it cannot be kept."""
        if name == JOBS:
            raise Reject(f"the webhook {JOBS!r} is kept by itself: choose another name", code="reserved", status=422)
        self._require_key()
        encoded, now, secret = config.model_dump_json(exclude_unset=True), self.clock(), None
        async with self.store.tenant(tenant) as conn:
            row = await self._locked(conn, tenant, name)
            if row is None:
                secret = await self._create(conn, tenant, name, encoded, enabled=config.enabled)
            elif create:
                raise Conflict(f"webhook {name!r} exists: PUT changes it", code="webhook_exists")
            elif read_config(row) != config or row["enabled"] != config.enabled:
                await conn.execute(self.store.sql.change_webhook, tenant, name, encoded, config.enabled, now)
            saved = await self._row(conn, tenant, name)
        return _saved(saved, secret)

    async def rotate(self, tenant: str, name: str) -> SavedWebhook:
        """Give a webhook a new secret; the one before signs for a day as well. Raises NotFound, and Reject."""
        self._require_key()
        now, secret = self.clock(), new_secret()
        async with self.store.tenant(tenant) as conn:
            row = await self._locked(conn, tenant, name)
            if row is None:
                if name != JOBS:
                    raise NotFound("webhook", name)
                secret = await self._create(conn, tenant, JOBS, "{}", enabled=True)
            else:
                sealed = self._seal(tenant, row["uid"], secret)
                until = now + BOTH_SIGN_FOR
                rotate = self.store.sql.rotate_webhook
                await conn.execute(rotate, tenant, name, sealed.key_id, sealed.data, until, now)
            saved = await self._row(conn, tenant, name)
        return _saved(saved, secret)

    async def require_jobs(self, tenant: str) -> None:
        """See to it that there is the webhook with whose secret jobs' own addresses are signed. Raises Reject."""
        self._require_key()
        async with self.store.tenant(tenant) as conn:
            if await self._locked(conn, tenant, JOBS) is None:
                await self._create(conn, tenant, JOBS, "{}", enabled=True)

    async def any(self) -> bool:
        """Return whether any tenant has a webhook."""
        async with self.store.system() as conn:
            return bool(await conn.fetchval(self.store.sql.any_webhook))

    async def get(self, tenant: str, name: str) -> Webhook:
        """Return a webhook. Raises NotFound."""
        row = await self.store.fetchrow(tenant, self.store.sql.get_webhook, tenant, name, COUNTED_MAX)
        if row is None:
            raise NotFound("webhook", name)
        return Webhook.model_validate(_fields(row))

    async def list(self, tenant: str, *, after: str, limit: int) -> WebhookList:
        """Return a page of a tenant's webhooks, by name."""
        values = (tenant, after, limit + 1, COUNTED_MAX)
        rows = await self.store.fetch(tenant, self.store.sql.list_webhooks, *values)
        page = tuple(Webhook.model_validate(_fields(row)) for row in rows[:limit])
        return WebhookList(webhooks=page, next_after=page[-1].name if len(rows) > limit else None)

    async def delete(self, tenant: str, name: str) -> bool:
        """Delete a webhook with its deliveries; return whether it was there. Raises Conflict for that of jobs."""
        if name == JOBS:
            raise Conflict(f"the webhook {JOBS!r} signs for jobs, and cannot be deleted")
        return await self.store.fetchval(tenant, self.store.sql.delete_webhook, tenant, name) is not None

    def secrets_of(self, row: Record) -> tuple[str, ...]:
        """Return the secrets that sign now for a delivery's webhook, the newest first. Raises CannotOpen."""
        tenant, uid = row["tenant"], row["uid"]
        secrets = [self._open(tenant, uid, row["key_id"], row["sealed"])]
        if row["former_until"] is not None and row["former_until"] > self.clock():
            secrets.append(self._open(tenant, uid, row["former_key_id"], row["former_sealed"]))
        return tuple(secrets)

    async def seal_again(self) -> int:
        """Encrypt with the newest key what an older one encrypted, and return how many webhooks that were."""
        if not (older := self.keys.older):
            return 0
        sealed, damaged, after = 0, 0, ("", "")
        while True:
            async with self.store.system() as conn:
                rows = await conn.fetch(self.store.sql.webhooks_of_older_keys, older, SEALED_AT_ONCE, *after)
            for row in rows:
                try:
                    await self._seal_row(row)
                    sealed += 1
                except CannotOpen:
                    # The others are not to keep an old key because of it.
                    damaged += 1
            if len(rows) < SEALED_AT_ONCE:
                break
            after = (rows[-1]["tenant"], rows[-1]["name"])
        if damaged:
            log.warning("secrets of webhooks stay under their keys", rows=damaged)
        return sealed

    async def _seal_row(self, row: Record) -> None:
        tenant, uid = row["tenant"], row["uid"]
        fresh = self._seal(tenant, uid, self._open(tenant, uid, row["key_id"], row["sealed"]))
        former = None
        if row["former_sealed"] is not None:
            former = self._seal(tenant, uid, self._open(tenant, uid, row["former_key_id"], row["former_sealed"]))
        values = (fresh.key_id, fresh.data, former and former.key_id, former and former.data)
        await self.store.execute(tenant, self.store.sql.seal_webhook, tenant, row["name"], row["sealed"], *values)

    async def _locked(self, conn: Connection, tenant: str, name: str) -> Record | None:
        await conn.execute(self.store.sql.lock_webhooks, tenant)
        return await conn.fetchrow(self.store.sql.get_webhook, tenant, name, 0)

    async def _row(self, conn: Connection, tenant: str, name: str) -> Record:
        row = await conn.fetchrow(self.store.sql.get_webhook, tenant, name, COUNTED_MAX)
        assert row is not None
        return row

    async def _create(self, conn: Connection, tenant: str, name: str, config: str, *, enabled: bool) -> str:
        if name != JOBS and await conn.fetchval(self.store.sql.count_webhooks, tenant) >= self.webhooks_max:
            raise Reject(
                f"the tenant has {self.webhooks_max} webhooks: delete one, or raise "
                "WAYLINE_NOTIFIER_WEBHOOKS_PER_TENANT_MAX",
                code="too_many_webhooks",
                status=409,
            )
        uid, secret = uuid4().hex, new_secret()
        sealed = self._seal(tenant, uid, secret)
        values = (tenant, name, uid, config, sealed.key_id, sealed.data, enabled, self.clock())
        await conn.execute(self.store.sql.create_webhook, *values)
        return secret

    def _require_key(self) -> None:
        if self.keys.newest is None:
            raise Reject(
                f"this installation cannot keep secrets of webhooks: set {self.keys.variable} to id:base64 of 32 "
                "random bytes where the notifier runs",
                code="no_secret_key",
                status=409,
            )

    def _seal(self, tenant: str, uid: str, secret: str) -> Sealed:
        return self.keys.seal({"secret": secret}, tenant=tenant, owner=uid)

    def _open(self, tenant: str, uid: str, key_id: str, data: bytes) -> str:
        return str(self.keys.open(Sealed(key_id, data), tenant=tenant, owner=uid)["secret"])


def read_config(row: Record) -> WebhookConfig:
    """Return the configuration in a webhook's row, which is not that of jobs."""
    return WebhookConfig.model_validate_json(row["config"], extra="ignore")


def address_in(row: Record) -> str | None:
    """Return the address of a webhook's row; None: of that of jobs."""
    return orjson.loads(row["config"]).get("url")


def _saved(row: Record, secret: str | None) -> SavedWebhook:
    return SavedWebhook.model_validate({**_fields(row), "secret": secret})


def _fields(row: Record) -> dict[str, object]:
    stored = {name: row[name] for name in ("name", "version", "failing_since", "created_at", "updated_at", "enabled")}
    disabled = None
    if row["disabled_at"] is not None:
        disabled = Disabled(at=row["disabled_at"], reason=row["disabled_reason"] or "")
    return {
        "url": None,
        "events": EVENT_TYPES,
        **orjson.loads(row["config"]),
        **stored,
        "disabled": disabled,
        "former_secret_until": row["former_until"],
        "pending": row["pending"],
        "failed": row["failed"],
    }
