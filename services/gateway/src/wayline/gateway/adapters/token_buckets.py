"""Token buckets in Postgres: one moment a bucket, at which it will be full again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from wayline.gateway.rates import Bucket
from wayline.gateway.token_leases import Granted
from wayline.store import Store


class TokenBuckets:
    """The buckets that all gateways share; their time is Postgres's, or a clock's where one is given."""

    def __init__(self, store: Store, *, clock: Callable[[], datetime] | None = None) -> None:
        self._store = store
        self._clock = clock

    async def lease(self, tenant: str, bucket: Bucket, *, tokens: int) -> Granted:
        """Take up to so many tokens out of a bucket, and half of what it has at most. Raises PostgresUnavailable."""
        rate = bucket.rate
        row = await self._store.fetchrow(
            tenant,
            self._store.sql.lease_tokens,
            *(tenant, bucket.name, tokens, rate.token_s, rate.burst, self._clock and self._clock()),
        )
        assert row is not None
        return Granted(row["granted"], row["tokens_left"])

    async def give_back(self, tenant: str, bucket: Bucket, *, tokens: int) -> None:
        """Put tokens back that nobody has used. Raises PostgresUnavailable."""
        seconds = tokens * bucket.rate.token_s
        await self._store.execute(tenant, self._store.sql.give_tokens_back, tenant, bucket.name, seconds)

    async def forget_full(self) -> None:
        """Forget buckets that have been full for an hour: a new one is full, too."""
        async with self._store.system() as conn:
            await conn.execute(self._store.sql.forget_full_buckets)
