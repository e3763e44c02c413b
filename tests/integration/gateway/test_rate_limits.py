"""Rates of tenants, keys and users: over HTTP, and over ten gateways with one Postgres."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wayline.contracts import headers as h
from wayline.contracts.jobs import JobView, Status
from wayline.contracts.schedules import GetSchedule, RunSchedule
from wayline.contracts.tenants import GetTenant, Tenant
from wayline.contracts.traces import JobPage, ListJobs
from wayline.gateway.adapters import keys as remembered
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.adapters.token_buckets import TokenBuckets
from wayline.gateway.errors import RateLimited
from wayline.gateway.rates import Bucket, Rate
from wayline.gateway.shapes.limits import MeterRates, RateBody
from wayline.gateway.token_leases import TokenLeases
from wayline.store import Store
from wayline.testkit import Platform

from .conftest import Running, start_gateway
from .others import Others
from .story import Story

JOB = {"agent": "assistant", "input": "hello"}
BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
TWO = {"per_minute": 1, "burst": 2}


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture(autouse=True)
def keys_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "FRESH_S", 0.0)


@pytest.fixture
async def store(platform: Platform) -> AsyncIterator[Store]:
    store = await platform.store("gateway")
    yield store
    await store.close()


@pytest.fixture
async def operator(others: Others, store: Store) -> dict[str, str]:
    """The key of an operator; the router knows every tenant."""
    await others.answer(GetTenant, lambda asked: Tenant(tenant=asked.tenant, created_at=BEGAN))
    return bearer(await create_key(store, "default", "operator"))


async def statuses(gateway: Running, headers: dict[str, str], *, times: int) -> list[int]:
    return [(await gateway.client.get("/v1/me", headers=headers)).status_code for _ in range(times)]


async def test_a_tenant_above_its_rate_is_told_when_to_come_again(
    gateway: Running, operator: dict[str, str], store: Store
):
    acme, globex = [bearer(await create_key(store, tenant, "k")) for tenant in ("acme", "globex")]
    limits = {"tenant": {"requests": TWO}}
    saved = await gateway.client.put("/v1/tenants/acme/limits", json=limits, headers=operator)
    first, second, refused = [await gateway.client.get("/v1/me", headers=acme) for _ in range(3)]
    of_openai = await gateway.client.get("/openai/v1/models", headers=acme)

    assert (saved.status_code, saved.json()["tenant_rates"]["requests"]) == (200, TWO)
    assert [answer.status_code for answer in (first, second, refused, of_openai)] == [200, 200, 429, 429]
    assert first.headers["ratelimit-policy"] == refused.headers["ratelimit-policy"] == '"tenant";q=1;w=60'
    assert first.headers["ratelimit"].startswith('"tenant";r=1;t=')
    assert refused.headers["ratelimit"].startswith('"tenant";r=0;t=')
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.json()["code"] == "rate_limit_exceeded" and refused.json()["instance"] == "/v1/me"
    assert of_openai.json()["error"]["type"] == "rate_limit_error"
    assert of_openai.json()["error"]["code"] == "rate_limit_exceeded" and "retry-after" in of_openai.headers
    neighbour = await gateway.client.get("/v1/me", headers=globex)
    assert neighbour.status_code == 200 and "ratelimit" not in neighbour.headers


async def test_a_rate_outlives_the_gateway(platform: Platform, operator: dict[str, str], store: Store):
    acme = bearer(await create_key(store, "acme", "k", limits=None))
    first = await start_gateway(platform, tenant_requests_per_minute=60)
    await first.client.put("/v1/tenants/acme/limits", json={"tenant": {"requests": TWO}}, headers=operator)
    before = await statuses(first, acme, times=1)
    await first.stop()
    second = await start_gateway(platform, tenant_requests_per_minute=60)

    assert before + await statuses(second, acme, times=2) == [200, 200, 429]


async def test_keys_and_users_have_rates_of_their_own(gateway: Running, operator: dict[str, str], store: Store):
    client = gateway.client
    body = {"name": "ci", "tenant": "acme", "scopes": ["read", "write"], "limits": {"requests": TWO}}
    created = (await client.post("/v1/keys", json=body, headers=operator)).json()
    ann, bob = [bearer(await create_key(store, "acme", who, user_id=who)) for who in ("ann", "bob")]
    await client.put("/v1/tenants/acme/limits", json={"user": {"requests": {"per_minute": 1}}}, headers=operator)
    narrow = await statuses(gateway, bearer(created["key"]), times=3)
    of_users = [await statuses(gateway, who, times=2) for who in (ann, bob)]
    address = f"/v1/keys/{created['id']}"
    read = await client.get(address, headers=operator)
    tag = {"If-Match": read.headers["etag"]}
    wider = {"limits": {"requests": {"per_minute": None}}}
    changed = await client.patch(address, json=wider, headers={**operator, **tag})
    late = await client.patch(address, json={"name": "other"}, headers={**operator, **tag})

    assert created["limits"]["requests"] == TWO
    assert (narrow, of_users) == ([200, 200, 429], [[200, 429], [200, 429]])
    assert [answer.status_code for answer in (changed, late)] == [200, 412]
    assert (changed.json()["name"], await statuses(gateway, bearer(created["key"]), times=3)) == ("ci", [200] * 3)


async def test_runs_of_a_schedule_fall_under_the_rate_of_jobs(
    gateway: Running, others: Others, operator: dict[str, str], store: Store, platform: Platform
):
    await Story(platform.bus, "acme", "j1").begin()
    for kind in (GetSchedule, RunSchedule):
        await others.answer(kind)
    acme = bearer(await create_key(store, "acme", "k", scopes=("read", "write")))
    await gateway.client.put("/v1/tenants/acme/limits", json={"tenant": {"jobs": TWO}}, headers=operator)

    answers = [await gateway.client.post("/v1/schedules/nightly/run", headers=acme) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert len([one for one in others.asked if isinstance(one, RunSchedule)]) == 2


async def test_a_redrive_is_not_counted_but_named_in_its_jobs(
    gateway: Running, others: Others, platform: Platform, store: Store
):
    limits = MeterRates(jobs=RateBody(per_minute=1, burst=1))
    admin = bearer(await create_key(store, "default", "admin", limits=limits))
    failed = [JobView(job_id=f"j{n}", status=Status.FAILED, agent="assistant", fingerprint="f" * 16) for n in (1, 2)]
    for job in failed:
        await Story(platform.bus, "default", job.job_id).fail()
    await others.answer(ListJobs, JobPage(jobs=tuple(failed)))

    body = {"fingerprint": "f" * 16, "limit": 5}
    redriven = (await gateway.client.post("/v1/dead-letters/redrive", json=body, headers=admin)).json()

    assert [job["outcome"] for job in redriven["jobs"]] == ["forked", "forked"]
    submitted = await platform.bus.js.get_msg("SUBMIT", 1)
    assert json.loads((submitted.headers or {})[h.SUBMITTED_BY])["name"] == "admin"


async def test_jobs_have_a_rate_and_a_repeated_one_is_not_refused(
    gateway: Running, operator: dict[str, str], store: Store
):
    acme = bearer(await create_key(store, "acme", "k"))
    limits = {"tenant": {"jobs": TWO}, "user": {"jobs": {"per_minute": 1}}}
    await gateway.client.put("/v1/tenants/acme/limits", json=limits, headers=operator)

    async def submit(user: str, key: str) -> Any:
        headers = {**acme, "Idempotency-Key": key}
        return await gateway.client.post("/v1/jobs", json={**JOB, "user_id": user}, headers=headers)

    one, twice, other, third = [
        await submit(*given) for given in (("ann", "a"), ("ann", "b"), ("bob", "c"), ("carl", "d"))
    ]
    again = await submit("ann", "a")

    assert [answer.status_code for answer in (one, twice, other, third, again)] == [202, 429, 202, 429, 202]
    assert "this user may begin 1 jobs a minute" in twice.json()["detail"]
    assert twice.headers["ratelimit-policy"] == '"user-jobs";q=1;w=60, "tenant-jobs";q=1;w=60'
    assert again.json()["job_id"] == one.json()["job_id"]


async def test_limits_are_an_operators_and_fall_back_to_the_installations(
    platform: Platform, operator: dict[str, str], store: Store
):
    gateway = await start_gateway(platform, key_requests_per_minute=30)
    admin = bearer(await create_key(store, "acme", "admin", scopes=("read", "admin")))
    refused = await gateway.client.put("/v1/tenants/acme/limits", json={}, headers=admin)
    foreign = await gateway.client.get("/v1/tenants/globex/limits", headers=admin)
    await gateway.client.put("/v1/tenants/acme/limits", json={"key": {"requests": TWO}}, headers=operator)
    own = await gateway.client.get("/v1/tenants/acme/limits", headers=admin)
    deleted, missing = [await gateway.client.delete("/v1/tenants/acme/limits", headers=operator) for _ in range(2)]
    back = await gateway.client.get("/v1/tenants/acme/limits", headers=operator)

    assert [one.status_code for one in (refused, foreign, own, deleted, missing)] == [403, 404, 200, 200, 404]
    assert own.json()["key_rates"]["requests"] == TWO
    assert back.json()["limits"] is None
    assert back.json()["key_rates"]["requests"] == {"per_minute": 30, "burst": 5}


@pytest.mark.parametrize("seconds", [20])
async def test_ten_gateways_with_one_postgres_keep_one_rate(seconds: int, store: Store):
    # The walk over processes that are killed is in tests/faults; here time passes as the test says.
    chance, step_s = random.Random(seconds), 0.1
    bucket = Bucket("requests/tenant/", "tenant", Rate.of(3_000))
    now = [0.0]
    buckets = TokenBuckets(store, clock=lambda: BEGAN + timedelta(seconds=now[0]))
    gateways = [TokenLeases(buckets, clock=lambda: now[0]) for _ in range(10)]

    async def passes(tenant: str) -> bool:
        try:
            await chance.choice(gateways).spend(tenant, [bucket])
        except RateLimited:
            return False
        return True

    accepted = refused = 0
    while now[0] < seconds:
        accepted += sum([await passes("acme") for _ in range(int(10 * step_s / bucket.rate.token_s))])
        refused += not await passes("globex")
        if chance.random() < 0.02:
            gateways[chance.randrange(10)] = TokenLeases(buckets, clock=lambda: now[0])
        now[0] += step_s
    for gateway in gateways:
        await gateway.give_back_all()

    assert accepted == pytest.approx(bucket.rate.burst + seconds / bucket.rate.token_s, rel=0.05)
    assert refused == 0
    raised = Bucket(bucket.name, "tenant", Rate.of(60_000, 100))
    owed = await buckets.lease("acme", raised, tokens=0)
    now[0] += 1
    earned = await buckets.lease("acme", raised, tokens=0)
    # A rate that is raised owes nothing for what the smaller one gave.
    assert (owed.left, earned.left) == (pytest.approx(0, abs=60), pytest.approx(100))
    # What nobody used is there again.
    left = await buckets.lease("globex", bucket, tokens=0)
    assert left.left > bucket.rate.burst - 12
