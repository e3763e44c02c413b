"""Rates over several gateways: slices of a shared bucket, spent without asking, given back, lost with a process."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from wayline.gateway.errors import RateLimited
from wayline.gateway.rates import Bucket, CallerRates, Rate
from wayline.gateway.token_leases import IDLE_S, Granted, TokenLeases
from wayline.store import PostgresUnavailable

TENANT = "acme"


@dataclass
class Clock:
    """Time that passes where a test says so."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Shared:
    """Buckets as Postgres keeps them."""

    clock: Clock
    full_at: dict[tuple[str, str], float] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    away: bool = False

    async def lease(self, tenant: str, bucket: Bucket, *, tokens: int) -> Granted:
        await asyncio.sleep(0)
        if self.away:
            raise PostgresUnavailable(where="here", cause="test")
        self.asked[tenant] += 1
        rate, place = bucket.rate, (tenant, bucket.name)
        full_at = max(self.full_at.get(place, 0.0), self.clock.now)
        full_at = min(full_at, self.clock.now + rate.burst * rate.token_s)
        there = rate.burst - (full_at - self.clock.now) / rate.token_s + 1e-6
        given = min(tokens, -(-int(there) // 2)) if there >= 1 else 0
        self.full_at[place] = full_at + given * rate.token_s
        return Granted(given, there - given)

    async def give_back(self, tenant: str, bucket: Bucket, *, tokens: int) -> None:
        self.full_at[tenant, bucket.name] -= tokens * bucket.rate.token_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shared(clock: Clock) -> Shared:
    return Shared(clock)


def bucket(per_minute: int, burst: int | None = None, *, name: str = "requests/tenant/") -> Bucket:
    return Bucket(name, name.split("/")[1], Rate.of(per_minute, burst))


async def passes(leases: TokenLeases, *buckets: Bucket, tenant: str = TENANT) -> bool:
    try:
        await leases.spend(tenant, buckets)
    except RateLimited:
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
async def test_ten_gateways_that_are_killed_keep_one_rate(seed: int, clock: Clock, shared: Shared):
    chance, step_s, seconds = random.Random(seed), 0.05, 60
    ours = bucket(chance.choice([300, 1_200, 6_000]))
    # The neighbour sends 20 requests a second, nearly as many as it may.
    theirs = bucket(1_300)
    gateways = [TokenLeases(shared, clock=clock) for _ in range(10)]
    accepted = refused = 0
    for _ in range(int(seconds / step_s)):
        for _ in range(int(10 * step_s / ours.rate.token_s)):
            accepted += await passes(chance.choice(gateways), ours)
        refused += not await passes(chance.choice(gateways), theirs, tenant="globex")
        if chance.random() < 0.004:
            # kill -9: what it had leased is gone.
            gateways[chance.randrange(10)] = TokenLeases(shared, clock=clock)
        clock.now += step_s

    limit = ours.rate.burst + seconds / ours.rate.token_s
    assert accepted == pytest.approx(limit, rel=0.05)
    assert accepted <= limit + 10 * ours.rate.slice_max
    assert refused == 0


async def test_a_request_below_its_rate_seldom_asks_the_shared_bucket(clock: Clock, shared: Shared):
    leases, ours = TokenLeases(shared, clock=clock), bucket(6_000)
    for _ in range(600):
        assert await passes(leases, ours)
        clock.now += 0.1
        await leases.give_back_idle()

    assert shared.asked[TENANT] < 600 / 20


async def test_an_empty_bucket_is_not_asked_for_each_refused_request(clock: Clock, shared: Shared):
    leases, ours = TokenLeases(shared, clock=clock), bucket(60)
    outcomes = [await passes(leases, ours) for _ in range(1_000)]

    assert sum(outcomes) == ours.rate.burst
    assert shared.asked[TENANT] <= ours.rate.burst + 2


async def test_a_bucket_that_is_empty_takes_nothing_of_the_others(clock: Clock, shared: Shared):
    leases, key, tenant = TokenLeases(shared, clock=clock), bucket(60, 2, name="requests/key/k1"), bucket(6_000)
    outcomes = [await passes(leases, key, tenant) for _ in range(100)]
    await leases.give_back_all()

    assert sum(outcomes) == 2
    assert (await shared.lease(TENANT, tenant, tokens=0)).left == pytest.approx(tenant.rate.burst - 2, abs=1e-3)


async def test_unused_tokens_come_back_after_a_while(clock: Clock, shared: Shared):
    leases, ours = TokenLeases(shared, clock=clock), bucket(60, 600)
    await passes(leases, ours)
    await asyncio.sleep(0)
    clock.now += IDLE_S
    await leases.give_back_idle()

    assert (await shared.lease(TENANT, ours, tokens=0)).left == pytest.approx(600, abs=1e-3)


async def test_the_refusal_says_when_and_whose_rate_it_is(clock: Clock, shared: Shared):
    leases, ours = TokenLeases(shared, clock=clock), bucket(6, 1)
    await passes(leases, ours)
    with pytest.raises(RateLimited) as refused:
        await leases.spend(TENANT, [ours])

    assert (refused.value.after_s, refused.value.status) == (pytest.approx(10, rel=0.01), 429)
    assert refused.value.headers == {"RateLimit-Policy": '"tenant";q=6;w=60', "RateLimit": '"tenant";r=0;t=10'}
    assert "6 requests a minute" in str(refused.value)
    clock.now += 10.01
    assert await passes(leases, ours)


async def test_each_gateway_keeps_the_rate_alone_while_postgres_is_away(clock: Clock, shared: Shared):
    leases, ours = TokenLeases(shared, clock=clock), bucket(600)
    shared.away = True
    accepted = 0
    for _ in range(600):
        accepted += await passes(leases, ours)
        clock.now += 0.01
    shared.away = False
    clock.now += 5
    again = await passes(leases, ours)

    assert accepted == pytest.approx(60, abs=3)
    assert again and shared.asked[TENANT] > 0


async def test_requests_at_once_wait_for_one_slice(clock: Clock, shared: Shared):
    leases, ours = TokenLeases(shared, clock=clock), bucket(60_000)
    outcomes = await asyncio.gather(*(passes(leases, ours) for _ in range(50)))

    assert all(outcomes)
    assert shared.asked[TENANT] <= 8


async def test_a_changed_rate_holds_at_once(clock: Clock, shared: Shared):
    leases = TokenLeases(shared, clock=clock)
    before = sum([await passes(leases, bucket(1, 4)) for _ in range(20)])
    at_once = await passes(leases, bucket(6_000, 1_000))
    clock.now += 0.5
    after = sum([await passes(leases, bucket(6_000, 1_000)) for _ in range(20)])

    assert (before, at_once, after) == (4, False, 20)


def test_a_caller_falls_under_its_key_its_user_and_its_tenant():
    rate = Rate.of(60)
    rates = CallerRates({("tenant", "requests"): rate, ("key", "requests"): rate, ("user", "jobs"): rate})

    assert [one.name for one in rates.buckets("requests", key_id="k1", user_id="ann")] == [
        "requests/key/k1",
        "requests/tenant/",
    ]
    [of_user] = rates.buckets("jobs", key_id="k1", user_id="ann")
    assert (of_user.label, "ann" in of_user.name) == ("user-jobs", False)
    assert rates.buckets("jobs", key_id="k1", user_id=None) == ()
