"""A job enters by HTTP: accepted when the bus has stored it, once however often it is sent."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from opentelemetry import propagate
from opentelemetry.propagators.textmap import TextMapPropagator, default_getter, default_setter
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from wayline.chassis import Bus, asks
from wayline.chassis.declare import declare
from wayline.chassis.handling.responder import Responder
from wayline.chassis.stream_limits import Limits
from wayline.contracts import ids
from wayline.contracts.jobs import PlanJob, Planned, Route, SubmitJob
from wayline.contracts.schedules import RunSchedule
from wayline.gateway.adapters import submissions
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.adapters.submissions import Submissions
from wayline.gateway.handlers.jobs import schedules
from wayline.gateway.handlers.shared import submit_job
from wayline.telemetry import Telemetry
from wayline.testkit import Platform, until

from .conftest import SUBMIT_MAX, Running, start_gateway
from .others import Others
from .story import Story

JOB = {"agent": "assistant", "input": "What moves the sea?"}
OTHER = {**JOB, "input": "What moves the moon?"}


async def queued(bus: Bus) -> list[SubmitJob]:
    """What lies in SUBMIT, oldest first."""
    state = (await bus.js.stream_info("SUBMIT")).state
    found = []
    for sequence in range(max(1, state.first_seq), state.last_seq + 1):
        raw = await bus.js.get_msg("SUBMIT", sequence)
        body = await bus.claims.check_out(raw.data) if raw.data and b'"$claim"' in raw.data else raw.data
        found.append(SubmitJob.from_wire(body or b"", raw.subject or ""))
    return found


async def test_a_submitted_job_is_queued_before_its_log_exists(gateway: Running, bus: Bus):
    answer = await gateway.client.post("/v1/jobs", json={**JOB, "session_id": "s1"})

    assert answer.status_code == 202
    accepted = answer.json()
    assert accepted["status"] == "queued"
    assert answer.headers["location"] == accepted["links"]["self"] == f"/v1/jobs/{accepted['job_id']}"
    (job,) = await queued(bus)
    assert (job.tenant, job.job_id, job.input, job.session_id) == ("default", accepted["job_id"], JOB["input"], "s1")
    seen = (await gateway.client.get(accepted["links"]["self"])).json()
    assert (seen["status"], seen["agent"], seen["session_id"]) == ("queued", "assistant", "s1")


async def test_the_same_key_is_the_same_job_also_after_a_restart(platform: Platform, gateway: Running, bus: Bus):
    key = {"Idempotency-Key": "order-1"}
    first = await gateway.client.post("/v1/jobs", json=JOB, headers=key)
    again = await gateway.client.post("/v1/jobs", json=JOB, headers=key)
    await gateway.service.stop(0)
    fresh = await start_gateway(platform)
    later = await fresh.client.post("/v1/jobs", json=JOB, headers=key)

    assert [answer.status_code for answer in (first, again, later)] == [202, 202, 202]
    assert first.json() == again.json() == later.json()
    assert [job.job_id for job in await queued(bus)] == [first.json()["job_id"]]


async def test_the_same_key_with_another_body_is_a_conflict(gateway: Running, bus: Bus):
    key = {"Idempotency-Key": "order-1"}
    await gateway.client.post("/v1/jobs", json=JOB, headers=key)

    other = await gateway.client.post("/v1/jobs", json=OTHER, headers=key)

    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert len(await queued(bus)) == 1


async def test_twenty_requests_with_one_key_at_once_are_one_job(
    gateway: Running, bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(submissions, "CLAIM_FRESH_S", 60.0)
    answers = await asyncio.gather(
        *(gateway.client.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "k"}) for _ in range(20))
    )

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    assert [job.job_id for job in await queued(bus)] == [answers[0].json()["job_id"]]


async def test_a_crash_before_the_publish_leaves_nothing_that_looks_accepted(
    platform: Platform, gateway: Running, bus: Bus
):
    """What a gateway leaves behind that was killed between writing the key down and publishing."""
    store = await platform.store("gateway")
    job = SubmitJob(tenant="default", job_id="job_before", agent=JOB["agent"], input=JOB["input"])
    await Submissions(store).claim(job, key="order-1")
    await store.close()

    unknown = await gateway.client.get("/v1/jobs/job_before")
    again = await gateway.client.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "order-1"})

    assert unknown.status_code == 404
    assert again.json()["job_id"] == "job_before"
    assert [job.job_id for job in await queued(bus)] == ["job_before"]


async def test_a_job_id_of_ones_own_means_one_content(gateway: Running, bus: Bus):
    mine = {**JOB, "job_id": "mine"}
    first = await gateway.client.post("/v1/jobs", json=mine)
    again = await gateway.client.post("/v1/jobs", json=mine)
    other = await gateway.client.post("/v1/jobs", json={**OTHER, "job_id": "mine"})

    assert first.json()["job_id"] == again.json()["job_id"] == "mine"
    assert (other.status_code, other.json()["code"]) == (409, "job_id_conflict")
    assert len(await queued(bus)) == 1


async def test_a_job_id_from_the_bus_is_known_by_its_log(gateway: Running, bus: Bus):
    story = Story(bus, "default", "mine")
    await story.begin(SubmitJob(tenant="default", job_id="mine", agent=JOB["agent"], input=JOB["input"]))

    same = await gateway.client.post("/v1/jobs", json={**JOB, "job_id": "mine"})
    other = await gateway.client.post("/v1/jobs", json={**OTHER, "job_id": "mine"})

    assert (same.status_code, same.json()["job_id"]) == (202, "mine")
    assert (other.status_code, other.json()["code"]) == (409, "job_id_conflict")
    assert await queued(bus) == []


async def test_two_tenants_may_use_one_job_id_at_once(platform: Platform, bus: Bus):
    store = await platform.store("gateway")
    secrets = [await create_key(store, tenant, "test") for tenant in ("acme", "globex")]
    await store.close()
    gateway = await start_gateway(platform)

    answers = await asyncio.gather(
        *(
            gateway.client.post(
                "/v1/jobs", json={**JOB, "job_id": "order-1"}, headers={"Authorization": f"Bearer {secret}"}
            )
            for secret in secrets
        )
    )

    assert [answer.status_code for answer in answers] == [202, 202]
    assert {(job.tenant, job.job_id) for job in await queued(bus)} == {("acme", "order-1"), ("globex", "order-1")}


async def test_a_full_stream_is_a_429_that_passes_without_help(gateway: Running, bus: Bus):
    for _ in range(SUBMIT_MAX):
        assert (await gateway.client.post("/v1/jobs", json=JOB)).status_code == 202

    refused = await gateway.client.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "k"})
    await bus.js.purge_stream("SUBMIT")
    later = await gateway.client.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "k"})

    assert (refused.status_code, refused.json()["code"]) == (429, "full")
    assert int(refused.headers["retry-after"]) >= 1
    assert later.status_code == 202
    assert [job.job_id for job in await queued(bus)] == [later.json()["job_id"]]


async def test_a_bus_that_is_away_is_a_503_and_comes_back(
    gateway: Running, platform: Platform, bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(submit_job, "SUBMIT_WITHIN_S", 0.2)

    async def is_ready() -> bool:
        return (await gateway.client.get("/health/ready")).status_code == 200

    await platform.nats.server.stop()
    await until(lambda: not gateway.bus.nc.is_connected, why="the gateway to notice")

    away = await gateway.client.post("/v1/jobs", json=JOB)
    unready = await gateway.client.get("/health/ready")
    await platform.nats.server.start()
    await until(lambda: gateway.bus.nc.is_connected, why="the gateway to be back")
    await until(lambda: bus.nc.is_connected, why="the test to be back")
    # They were in memory.
    async for _ in declare(bus.js, Limits(memory=True)):
        pass
    await until(is_ready, why="the gateway to be ready")
    ready = await gateway.client.get("/health/ready")

    assert (away.status_code, away.json()["code"]) == (503, "unavailable")
    assert "retry-after" in away.headers
    assert (unready.status_code, unready.json()["needs"]["bus"]) == (
        503,
        "the bus does not answer: reconnecting; try again",
    )
    assert ready.json() == {"status": "ok", "needs": {"bus": "ok", "postgres": "ok"}}


async def test_two_megabytes_of_input_arrive_whole(gateway: Running, bus: Bus):
    text = "moon " * 400_000

    answer = await gateway.client.post("/v1/jobs", json={**JOB, "input": text})

    assert answer.status_code == 202
    (job,) = await queued(bus)
    assert job.input == text


async def test_ten_megabytes_are_refused_and_the_client_is_told(gateway: Running, bus: Bus):
    body = b'{"agent": "assistant", "input": "' + b"x" * 10_000_000 + b'"}'

    async def in_pieces():
        for at in range(0, len(body), 65_536):
            yield body[at : at + 65_536]

    json = {"Content-Type": "application/json"}
    at_once = await gateway.client.post("/v1/jobs", content=body, headers=json)
    streamed = await gateway.client.post("/v1/jobs", content=in_pieces(), headers=json)

    for answer in (at_once, streamed):
        assert answer.status_code == 413
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "body_too_large"
    assert await queued(bus) == []


async def test_waiting_returns_the_finished_job(gateway: Running, bus: Bus):
    waiting = asyncio.create_task(gateway.client.post("/v1/jobs?wait=20", json={**JOB, "job_id": "j1"}))
    await until(lambda: queued(bus), why="the job to be on the bus")
    await Story(bus, "default", "j1").tell()
    answer = await waiting

    assert answer.status_code == 200
    job = answer.json()
    assert (job["status"], job["answer"], job["agent_version"], job["cost_usd"]) == ("completed", "The moon.", 3, "0")
    assert job["links"]["events"] == "/v1/jobs/j1/events"
    assert (await gateway.client.get("/v1/jobs/j1")).json() == job


async def test_a_partial_answer_is_shown_with_its_limit(gateway: Running, bus: Bus):
    story = Story(bus, "default", "j1")
    await story.begin()
    await story.claim()
    await story.think()
    await story.end("half", partial=True, reason="the job's 1 steps are used up")

    job = (await gateway.client.get("/v1/jobs/j1")).json()
    described = (await gateway.client.get("/openapi.json")).json()["components"]["schemas"]["JobView"]["properties"]

    assert (job["answer"], job["partial"], job["reason"]) == ("half", True, "the job's 1 steps are used up")
    assert "Which limit" in described["reason"]["description"]


async def test_an_accepted_job_is_acknowledged_though_the_bus_went_away(gateway: Running, bus: Bus, platform: Platform):
    waiting = asyncio.create_task(gateway.client.post("/v1/jobs?wait=2", json=JOB))
    await until(lambda: queued(bus), why="the job to be on the bus")
    await platform.nats.server.stop()
    # Far less than the bus is tried for: the answer does not wait until that is over.
    answer = await asyncio.wait_for(waiting, 12)
    await platform.nats.server.start()
    await until(lambda: gateway.bus.nc.is_connected and bus.nc.is_connected, why="both to be back")

    assert (answer.status_code, answer.json().get("status")) == (202, "queued")


async def test_waiting_is_bounded(platform: Platform, bus: Bus):
    gateway = await start_gateway(platform, wait_max_s=0.1)

    answer = await gateway.client.post("/v1/jobs?wait=3600", json=JOB)

    assert (answer.status_code, answer.json()["status"]) == (202, "queued")


async def test_a_dry_run_says_the_route_and_runs_nothing(gateway: Running, bus: Bus):
    route = Route(provider="p", model="m", tier="flash", reason="it is short", estimated_cost_usd=Decimal("0.002"))

    async def plan(asked: PlanJob) -> Planned:
        return Planned(agent=asked.job.agent, agent_version=1, route=route)

    router = Responder(bus, Telemetry("router"), asks(PlanJob, plan))
    await router.start()
    await bus.settled()

    answer = await gateway.client.post("/v1/jobs", json={**JOB, "options": {"dry_run": True}})

    assert answer.status_code == 200
    assert answer.json()["route"]["estimated_cost_usd"] == "0.002"
    assert await queued(bus) == []
    await router.stop(1)


async def test_the_jobs_trace_has_the_gateway_and_links_the_caller(gateway: Running, bus: Bus):
    theirs = f"00-{ids.trace_id('victim', 'job')}-00f067aa0ba902b7-01"

    answer = await gateway.client.post("/v1/jobs", json=JOB, headers={"traceparent": theirs})

    job_id = answer.json()["job_id"]
    raw = await bus.js.get_msg("SUBMIT", 1)
    spans = {span.name: span for span in gateway.spans.get_finished_spans()}
    http, publish = spans["POST /v1/jobs"], spans["publish jobs.submit.{tenant}"]
    assert http.context and publish.context and publish.parent and raw.headers
    assert f"{publish.context.trace_id:032x}" == ids.trace_id("default", job_id)
    assert f"{publish.parent.span_id:016x}" == ids.job_span("default", job_id)
    assert {link.context.span_id for link in publish.links} == {http.context.span_id, 0x00F067AA0BA902B7}
    assert http.parent is None
    assert f"{http.context.trace_id:032x}" not in theirs
    assert [link.context.span_id for link in http.links] == [0x00F067AA0BA902B7]
    assert raw.headers["Wayline-Caller"] == theirs
    assert raw.headers["traceparent"] == f"00-{publish.context.trace_id:032x}-{publish.context.span_id:016x}-01"


class OtherHeader(TextMapPropagator):
    """Reads a caller's span from a header of its own, as OTEL_PROPAGATORS may ask for."""

    @property
    def fields(self) -> set[str]:
        return {"b3"}

    def extract(self, carrier, context=None, getter=default_getter):
        trace_id, span_id = getter.get(carrier, "b3")[0].split("-") if getter.get(carrier, "b3") else ("0", "0")
        parent = SpanContext(int(trace_id, 16), int(span_id, 16), True, TraceFlags(1))
        return set_span_in_context(NonRecordingSpan(parent), context)

    def inject(self, carrier, context=None, setter=default_setter):
        raise AssertionError("nothing is sent over HTTP here")


async def test_a_caller_in_a_configured_propagators_header_is_only_a_link(platform: Platform, bus: Bus):
    before = propagate.get_global_textmap()
    propagate.set_global_textmap(OtherHeader())
    try:
        gateway = await start_gateway(platform)
        theirs = ids.trace_id("victim", "job")

        await gateway.client.post("/v1/jobs", json=JOB, headers={"b3": f"{theirs}-00f067aa0ba902b7"})
    finally:
        propagate.set_global_textmap(before)

    raw = await bus.js.get_msg("SUBMIT", 1)
    http = next(span for span in gateway.spans.get_finished_spans() if span.name == "POST /v1/jobs")
    assert http.parent is None
    assert [link.context.span_id for link in http.links] == [0x00F067AA0BA902B7]
    assert raw.headers is not None and raw.headers["Wayline-Caller"] == f"00-{theirs}-00f067aa0ba902b7-01"


async def test_a_run_by_hand_is_answered_once_its_job_is_found(
    gateway: Running, bus: Bus, others: Others, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(schedules, "LOG_WITHIN_S", 30.0)
    await others.answer(RunSchedule)
    order = list[str]()
    running = asyncio.create_task(gateway.client.post("/v1/schedules/nightly/run"))
    running.add_done_callback(lambda _: order.append("answered"))
    await until(lambda: others.asked, why="the run is asked for")
    before = [(await gateway.client.get("/v1/jobs/j1")).status_code for _ in range(5)]
    order.append("begun")
    await Story(bus, "default", "j1").begin()
    accepted = (await running).json()

    assert (before, order) == ([404] * 5, ["begun", "answered"])
    assert (await gateway.client.get(accepted["links"]["self"])).status_code == 200
