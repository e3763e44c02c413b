"""Cancel, and answers to what a parked job waits for."""

from __future__ import annotations

from decimal import Decimal

import pytest

from wayline.chassis import Bus
from wayline.contracts.jobs import Answer, Cancel, RaiseBudget, Signal
from wayline.gateway.adapters import signals as counted
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import Running, start_gateway
from .story import Story


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def signals(bus: Bus) -> list[Signal]:
    state = (await bus.js.stream_info("SIGNALS")).state
    raw = [await bus.js.get_msg("SIGNALS", n) for n in range(max(1, state.first_seq), state.last_seq + 1)]
    return [Signal.from_wire(message.data or b"", message.subject or "") for message in raw]


async def test_a_cancel_is_stored_even_for_a_job_without_log(gateway: Running, bus: Bus):
    await gateway.client.post("/v1/jobs", json={"agent": "assistant", "input": "x", "job_id": "queued"})
    await Story(bus, "default", "running").begin()

    bare = await gateway.client.post("/v1/jobs/queued/cancel")
    reasoned = await gateway.client.post("/v1/jobs/running/cancel", json={"reason": "wrong question"})

    assert [bare.status_code, reasoned.status_code] == [202, 202]
    assert await signals(bus) == [
        Signal(tenant="default", job_id="queued", signal=Cancel(by="local")),
        Signal(tenant="default", job_id="running", signal=Cancel(reason="wrong question", by="local")),
    ]


async def test_a_jobs_budget_is_changed_by_a_signal(gateway: Running, bus: Bus):
    await Story(bus, "default", "running").begin()

    raised = await gateway.client.post("/v1/jobs/running/budget", json={"budget_usd": "0.50"})
    wrong = await gateway.client.post("/v1/jobs/running/budget", json={"budget_usd": "-1"})

    assert (raised.status_code, raised.json()["signal"], wrong.status_code) == (202, "budget", 422)
    raised = RaiseBudget(budget_usd=Decimal("0.50"), by="local")
    assert await signals(bus) == [Signal(tenant="default", job_id="running", signal=raised)]


async def test_an_ended_job_takes_no_more_signals(gateway: Running, bus: Bus):
    await Story(bus, "default", "j1").tell()

    cancel = await gateway.client.post("/v1/jobs/j1/cancel")
    budget = await gateway.client.post("/v1/jobs/j1/budget", json={"budget_usd": 1})
    answer = await gateway.client.post("/v1/jobs/j1/answers/d1", json={"outcome": "retry"})

    assert [(a.status_code, a.json()["code"]) for a in (cancel, budget, answer)] == [(409, "job_ended")] * 3
    assert await signals(bus) == []


async def test_a_decision_is_accepted_only_while_its_job_waits(gateway: Running, bus: Bus):
    story = Story(bus, "default", "j1")
    await story.begin()
    await story.claim()
    early = await gateway.client.post("/v1/jobs/j1/answers/d1", json={"outcome": "succeeded"})
    await story.park("d1")
    shown = await gateway.client.get("/v1/jobs/j1")
    other = await gateway.client.post("/v1/jobs/j1/answers/d2", json={"outcome": "succeeded"})
    right = await gateway.client.post("/v1/jobs/j1/answers/d1", json={"outcome": "succeeded", "content": "sent"})

    assert (shown.json()["status"], shown.json()["waiting_for"]["wait_id"]) == ("parked", "d1")
    assert [(a.status_code, a.json()["code"]) for a in (early, other)] == [(409, "not_waiting")] * 2
    assert right.status_code == 202
    given = Answer(decision_id="d1", outcome="succeeded", content="sent", by="local")
    assert await signals(bus) == [Signal(tenant="default", job_id="j1", signal=given)]


async def test_a_tenant_at_its_signal_share_gets_429_alone(
    platform: Platform, bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WAYLINE_SIGNALS_PER_TENANT_MAX", "10")
    monkeypatch.setattr(counted, "COUNTED_AGAIN_S", 0.0)
    store = await platform.store("gateway")
    acme, globex = [bearer(await create_key(store, tenant, "t")) for tenant in ("acme", "globex")]
    await store.close()
    gateway = await start_gateway(platform)
    for tenant in ("acme", "globex"):
        await Story(bus, tenant, "running").begin()

    answers = [await gateway.client.post("/v1/jobs/running/cancel", headers=acme) for _ in range(11)]
    other = await gateway.client.post("/v1/jobs/running/cancel", headers=globex)
    await bus.js.purge_stream("SIGNALS", subject="signals.acme.*")
    again = await gateway.client.post("/v1/jobs/running/cancel", headers=acme)

    assert [answer.status_code for answer in answers] == [*[202] * 10, 429]
    assert answers[-1].json()["code"] == "too_many_signals"
    assert "WAYLINE_SIGNALS_PER_TENANT_MAX" in answers[-1].json()["detail"]
    assert [other.status_code, again.status_code] == [202, 202]


async def test_a_long_answer_is_a_small_signal_and_is_read_whole(gateway: Running, bus: Bus):
    story = Story(bus, "default", "j1")
    await story.begin()
    await story.claim()
    await story.park("d1")
    content = "ä" * 100_000

    answered = await gateway.client.post("/v1/jobs/j1/answers/d1", json={"outcome": "succeeded", "content": content})

    assert answered.status_code == 202
    stored = await bus.js.get_msg("SIGNALS", 1)
    assert len(stored.data or b"") < Signal.body_max
    whole = await bus.claims.check_out(stored.data or b"")
    assert Signal.from_wire(whole, stored.subject or "").signal.content == content
