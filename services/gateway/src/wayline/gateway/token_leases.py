"""Tokens of rates that this process has leased: requests are counted here, and Postgres is asked once a slice.

A gateway leases a few tokens of a bucket, spends them without asking anybody, leases the next ones before these are
used up, and gives back what it has not used for a while. So all gateways together keep a bucket's rate, and a process
that is killed takes with it no more than one slice.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol
from weakref import WeakValueDictionary

import structlog

from wayline.gateway.errors import RateLimited
from wayline.gateway.rates import Bucket, policy_header, standing_header
from wayline.store import PostgresUnavailable

log = structlog.get_logger()

POLL_S: Final = 0.25
"""How long an empty bucket is not asked again."""
USED_UP_WITHIN_S: Final = 5.0
"""A slice that lasts for less is followed by one of twice its size, one that lasts longer by half of it."""
IDLE_S: Final = 10.0
"""After so long without a new slice, the tokens that are left are given back."""
ASK_WITHIN_S: Final = 2.0
AWAY_S: Final = 2.0
"""How long Postgres is not asked again after it did not answer."""
AT_ONCE_PER_TENANT: Final = 2
"""Slices that one process asks for at once: each needs a connection to Postgres."""
LEASES_MAX: Final = 20_000
"""Buckets of which one process holds a slice."""
ROUNDS_MAX: Final = 16
"""How often a request waits for a slice that others use up before it."""


class Granted(NamedTuple):
    """What a bucket has given, and what is left in it."""

    tokens: int
    left: float


class Buckets(Protocol):
    """The buckets that all gateways share."""

    async def lease(self, tenant: str, bucket: Bucket, *, tokens: int) -> Granted:
        """Take up to so many tokens out of a bucket. Raises PostgresUnavailable."""
        ...

    async def give_back(self, tenant: str, bucket: Bucket, *, tokens: int) -> None:
        """Put tokens back that nobody has used. Raises PostgresUnavailable."""
        ...


@dataclass(eq=False)
class _Lease:
    """The tokens of one bucket that are here."""

    tenant: str
    bucket: Bucket
    turns: asyncio.Semaphore
    leased_at: float
    left: int = 0
    wanted: int = 1
    waiting: int = 0
    """Requests that have no token yet."""
    in_bucket: float = 0.0
    empty_until: float = 0.0
    renewing: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def is_renewing(self) -> bool:
        return self.renewing is not None and not self.renewing.done()


class TokenLeases:
    """Who may send a request or begin a job now, over all gateways."""

    def __init__(self, buckets: Buckets, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets = buckets
        self._clock = clock
        self._leases: dict[tuple[str, str], _Lease] = {}
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._away_until = 0.0

    async def spend(self, tenant: str, buckets: Sequence[Bucket]) -> None:
        """Take a token of each bucket, or of none. Raises RateLimited."""
        leases = [self._lease_of(tenant, bucket) for bucket in buckets]
        short: list[_Lease] = []
        for _ in range(ROUNDS_MAX):
            short = [lease for lease in leases if lease.left < 1]
            if not short:
                break
            for lease in short:
                self._require_hope(lease, leases)
            await self._renewed(short[0])
        else:
            self._refuse(short[0], leases)
        for lease in leases:
            lease.left -= 1
            if lease.wanted > 1 and lease.left <= lease.wanted // 2 and self._clock() >= lease.empty_until:
                # Before it is used up: then no request waits for Postgres. Single tokens would lie in each gateway,
                # where the bucket of a small rate has not many more.
                self._begin_renewing(lease)

    def headers(self, tenant: str, buckets: tuple[Bucket, ...]) -> dict[str, str]:
        """Return what a caller is told of its buckets, as far as this process knows."""
        standings = {bucket: self._standing(self._lease_of(tenant, bucket)) for bucket in buckets}
        return {"RateLimit-Policy": policy_header(buckets), "RateLimit": standing_header(standings)}

    async def give_back_idle(self) -> None:
        """Give back what has not been used for a while."""
        now = self._clock()
        idle = [lease for lease in self._leases.values() if now - lease.leased_at >= IDLE_S and not lease.is_renewing]
        await self._give_back(idle)

    async def give_back_all(self) -> None:
        """Give back everything that is left."""
        await asyncio.gather(
            *(lease.renewing for lease in self._leases.values() if lease.renewing is not None), return_exceptions=True
        )
        await self._give_back(list(self._leases.values()))

    def _lease_of(self, tenant: str, bucket: Bucket) -> _Lease:
        place = tenant, bucket.name
        lease = self._leases.get(place)
        if lease is None:
            while len(self._leases) >= LEASES_MAX:
                self._leases.pop(next(iter(self._leases)))
            turns = self._turns.setdefault(tenant, asyncio.Semaphore(AT_ONCE_PER_TENANT))
            # As if one token had been earned: the first request passes also while Postgres is away.
            lease = _Lease(tenant, bucket, turns, leased_at=self._clock() - bucket.rate.token_s)
            self._leases[place] = lease
        if lease.bucket != bucket:
            # Its rate was changed: how long it is empty was said of the old one.
            lease.bucket, lease.empty_until = bucket, 0.0
        return lease

    def _require_hope(self, lease: _Lease, leases: Sequence[_Lease]) -> None:
        if self._clock() < lease.empty_until:
            self._refuse(lease, leases)

    def _refuse(self, lease: _Lease, leases: Sequence[_Lease]) -> None:
        after_s = max(lease.empty_until - self._clock(), lease.bucket.rate.token_s, POLL_S)
        raise RateLimited(
            whose=lease.bucket.label,
            per_minute=lease.bucket.rate.per_minute,
            after_s=after_s,
            headers=self.headers(lease.tenant, tuple(each.bucket for each in leases)),
        )

    def _standing(self, lease: _Lease) -> float:
        earned = (self._clock() - lease.leased_at) / lease.bucket.rate.token_s
        return 0.0 if self._clock() < lease.empty_until else lease.left + lease.in_bucket + earned

    async def _renewed(self, lease: _Lease) -> None:
        self._begin_renewing(lease)
        assert lease.renewing is not None
        lease.waiting += 1
        try:
            # One request that is cancelled takes the slice from nobody else who waits for it.
            await asyncio.shield(lease.renewing)
        finally:
            lease.waiting -= 1

    def _begin_renewing(self, lease: _Lease) -> None:
        if not lease.is_renewing:
            lease.renewing = asyncio.create_task(self._renew(lease), name=f"lease of {lease.bucket.name}")

    async def _renew(self, lease: _Lease) -> None:
        async with lease.turns:
            now, rate = self._clock(), lease.bucket.rate
            wanted = lease.wanted * 2 if now - lease.leased_at < USED_UP_WITHIN_S else lease.wanted // 2
            lease.wanted = max(1, min(wanted, rate.slice_max))
            granted = await self._ask(lease)
            if granted is None:
                granted = Granted(min(math.floor((now - lease.leased_at) / rate.token_s), rate.burst), 0.0)
                # What was earned beyond whole tokens is kept for the next time.
                lease.leased_at = max(now - rate.token_s, lease.leased_at + granted.tokens * rate.token_s)
            elif granted.tokens:
                lease.leased_at = now
            lease.in_bucket = granted.left
            lease.left += granted.tokens
            if not granted.tokens:
                lease.empty_until = now + max(POLL_S, (1.0 - granted.left) * rate.token_s)

    async def _ask(self, lease: _Lease) -> Granted | None:
        """Return a slice of the shared bucket; None while Postgres is away: each process keeps the rate alone then."""
        if self._clock() < self._away_until:
            return None
        try:
            async with asyncio.timeout(ASK_WITHIN_S):
                # Tokens that requests wait for are spent at once: of these a slice may be larger.
                tokens = max(lease.wanted, lease.waiting)
                return await self._buckets.lease(lease.tenant, lease.bucket, tokens=tokens)
        except (PostgresUnavailable, TimeoutError) as error:
            log.warning("rates are kept by each gateway alone", why=str(error) or type(error).__name__)
            self._away_until = self._clock() + AWAY_S
            return None

    async def _give_back(self, leases: Sequence[_Lease]) -> None:
        for lease in leases:
            tokens, lease.left = lease.left, 0
            self._leases.pop((lease.tenant, lease.bucket.name), None)
            if tokens < 1 or self._clock() < self._away_until:
                continue
            try:
                async with asyncio.timeout(ASK_WITHIN_S):
                    await self._buckets.give_back(lease.tenant, lease.bucket, tokens=tokens)
            except (PostgresUnavailable, TimeoutError):
                # Lost, as with a process that is killed: fewer requests pass, never more.
                self._away_until = self._clock() + AWAY_S
