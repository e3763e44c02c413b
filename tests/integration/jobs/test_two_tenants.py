"""What one tenant does on the bus leaves another's jobs alone."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from wayline.contracts.jobs import Cancel, Due, Expire, RaiseBudget, Signal
from wayline.contracts.tenants import CreateTenant, Tenant
from wayline.journal import JobLog, signals_held
from wayline.testkit import Platform, until

SHARE = 200
STREAM_MAX_BYTES = 8 * 1024 * 1024
WAVE = 500
CANCEL = orjson.dumps({"signal": {"type": "cancel", "reason": "x" * 10_000}})


async def with_acme(platform: Platform, *services: str) -> None:
    """Start services and make a second tenant."""
    await platform.start("router", *services)
    await platform.bus.ask(CreateTenant(tenant="acme"), Tenant)


async def queue_acmes(platform: Platform, job_id: str) -> None:
    """Submit a job of the second tenant and wait for its log: the end of a wait is kept for no job without one."""
    await platform.publish({"agent": "assistant", "input": "go", "job_id": job_id}, tenant="acme")
    await until(JobLog(platform.bus, "acme", job_id).last, why="the job is accepted")


async def limit_signals(platform: Platform) -> None:
    """A stream that one tenant would fill with two waves."""
    config = (await platform.bus.js.stream_info("SIGNALS")).config
    await platform.bus.js.update_stream(config.evolve(max_bytes=STREAM_MAX_BYTES))


async def flood(platform: Platform, *, wave: int) -> None:
    """Signal as many jobs as the tenant `default` can name, then wait for what is left of it."""
    js = platform.client.jetstream()
    publishes = [js.publish(f"signals.default.w{wave}-{n}", CANCEL) for n in range(WAVE)]
    await asyncio.gather(*publishes, return_exceptions=True)

    async def within_share() -> bool:
        return sum((await signals_held(platform.bus, "default")).values()) <= SHARE

    await until(within_share, why="the tenant is within its share again")


async def test_a_tenant_cannot_fill_the_stream_of_signals(platform: Platform, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAYLINE_SIGNALS_PER_TENANT_MAX", str(SHARE))
    await with_acme(platform)
    await queue_acmes(platform, "j2")
    await limit_signals(platform)
    first = Signal(tenant="acme", job_id="j0", signal=Cancel())
    await platform.bus.publish(first, msg_id=first.msg_id)

    for wave in range(4):
        await flood(platform, wave=wave)
    cancel = Signal(tenant="acme", job_id="j1", signal=Cancel())
    await platform.bus.publish(cancel, msg_id=cancel.msg_id)
    due = Due(tenant="acme", job_id="j2", wait_id="w1")
    await platform.bus.publish(due, msg_id="due-1")

    async def all_there() -> bool:
        held = await signals_held(platform.bus, "acme")
        return held == {"signals.acme.j0": 1, "signals.acme.j1": 1, "signals.acme.j2": 1}

    await until(all_there, why="the other tenant's cancels and expiry are stored")


async def test_signals_of_ended_jobs_are_forgotten_first(platform: Platform, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAYLINE_SIGNALS_PER_TENANT_MAX", "20")
    await platform.start("router", "executor", "tool_registry")
    await platform.submit("done")
    await platform.wait_for("done")

    await platform.signal("queued", type="cancel")
    for _ in range(15):
        await platform.signal("done", type="cancel")

    async def forgotten() -> bool:
        held = await signals_held(platform.bus, "default")
        assert held["signals.default.queued"] == 1
        # Not all of them where a look came in between: what comes after it is within the share.
        return held.get("signals.default.done", 0) < 15

    await until(forgotten, why="the ended job's signals are forgotten, and the other's is kept")


async def test_no_client_can_use_up_another_tenants_expiry_id(platform: Platform):
    await with_acme(platform)
    await queue_acmes(platform, "j1")
    js = platform.client.jetstream()
    for guess in ("acme/j1:expire:w1", "router:1:0", "router:2:0"):
        await js.publish("signals.default.x", CANCEL, headers={"Nats-Msg-Id": guess})

    await platform.bus.publish(Due(tenant="acme", job_id="j1", wait_id="w1"), msg_id="due-1")

    async def expired() -> bool:
        return await signals_held(platform.bus, "acme") == {"signals.acme.j1": 1}

    await until(expired, why="the expiry is stored")
    stored = await platform.bus.js.get_last_msg("SIGNALS", "signals.acme.j1")
    assert Signal.from_wire(stored.data or b"", stored.subject or "").signal == Expire(wait_id="w1")


async def test_headers_that_name_their_tenants_make_two_jobs_of_one_id(platform: Platform):
    await with_acme(platform)
    js, body = platform.bus.js, b'{"agent": "assistant", "input": "go", "job_id": "order-1"}'
    tenants = ("default", "acme")

    acks = [await js.publish(f"jobs.submit.{one}", body, headers={"Nats-Msg-Id": f"{one}/order-1"}) for one in tenants]

    assert not any(ack.duplicate for ack in acks)
    for tenant in tenants:
        await until(JobLog(platform.bus, tenant, "order-1").last, why=f"the job of {tenant} is accepted")


def test_two_signals_never_have_the_same_id():
    signal = Signal(tenant="acme", job_id="j1", signal=RaiseBudget())

    assert signal.msg_id != signal.msg_id
