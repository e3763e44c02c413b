"""Every other service killed at each of its failpoints: a fresh one takes over, and what it was doing is done once."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.errors import WaylineError
from wayline.contracts.events import ApprovalDecided
from wayline.contracts.knowledge import Document, GetDocument, IndexDocument
from wayline.embedded.ports import free_port
from wayline.simulator.models import Facts, Rates
from wayline.testkit import until
from wayline.testkit.processes import ServiceProcess

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import EVERY_EFFECT, ONCE, TENANT, FaultPlatform, calls, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

QUICK = {
    Failpoint.GATEWAY_SUBMIT_AFTER,
    Failpoint.ROUTER_RECORD_AFTER,
    Failpoint.ROUTER_WAKE_AFTER,
    Failpoint.ROUTER_EXPIRE_AFTER,
    Failpoint.REGISTRY_EFFECT_AFTER,
    Failpoint.RETRIEVAL_STORE_AFTER,
    Failpoint.TRACING_STORE_AFTER,
}
"""What `make test` runs of them. A submission that comes again after its ticket is rule 10, a call that was begun and
not made is rule 23: both in `rules`."""
WAKES = {Failpoint.ROUTER_WAKE_BEFORE, Failpoint.ROUTER_WAKE_AFTER}
TURNS = {Failpoint.ROUTER_TURN_BEFORE, Failpoint.ROUTER_TURN_AFTER}
EXPIRIES = [Failpoint.ROUTER_EXPIRE_BEFORE, Failpoint.ROUTER_EXPIRE_AFTER]
"""Reached where nobody decides in time: they have a test of their own."""
FIRINGS = {Failpoint.ROUTER_FIRING_BEFORE, Failpoint.ROUTER_FIRING_AFTER, Failpoint.ROUTER_FIRED_AFTER}
"""Reached by schedules alone: `test_schedules.py`."""
STEERING = {Failpoint.ROUTER_STEER_BEFORE, Failpoint.ROUTER_STEER_AFTER}
"""They have tests of their own."""
CHILDREN = {
    Failpoint.ROUTER_CHILD_BEFORE,
    Failpoint.ROUTER_CHILD_AFTER,
    Failpoint.ROUTER_PARENT_BEFORE,
    Failpoint.ROUTER_PARENT_AFTER,
}
"""Reached by jobs that start others alone: `test_children.py`."""
REDRIVES = {point for point in Failpoint if point.startswith(("gateway.redrive", "gateway.action"))}
"""Reached where failed jobs go on: `test_redrives.py`."""
CHARGES = {Failpoint.GATEWAY_HOLD_AFTER, Failpoint.GATEWAY_COUNT_BEFORE, Failpoint.GATEWAY_COUNT_AFTER}
"""Reached by calls over `/mcp` that are paid for: `test_paid_mcp_calls.py`."""
FORGETTING = {point for point in Failpoint if point.startswith("router.forget")}
"""Reached where a user is forgotten: `test_forgetting.py`."""
SETS = {point for point in Failpoint if point.startswith(("retrieval.vectors.", "retrieval.switch."))}
"""Reached where another embedding model takes over: tests/integration/retrieval/test_vector_sets.py."""
FACTS = {
    point for point in Failpoint if point.startswith(("retrieval.facts.", "retrieval.consolidate.", "retrieval.undo."))
}
"""Reached where facts are saved and put in order: tests/integration/retrieval/test_failpoints.py."""
EXTRACTIONS = {point for point in Failpoint if point.startswith("router.extract")}
"""Reached where a session has gone quiet: `test_extractions.py`."""
WEBHOOKS = {point for point in Failpoint if point.startswith("notifier.")}
"""Reached where webhooks are sent: `test_webhooks.py`."""
RUN_CONTROLS = {point for point in Failpoint if point.startswith(("router.place", "router.resume"))}
"""Reached where jobs wait for a place or for the end of a pause: `test_run_controls.py`."""
TURNS_IN_LANES = {Failpoint.ROUTER_FEED_BEFORE, Failpoint.ROUTER_FEED_AFTER}
"""Reached where tenants share a lane: tests/integration/jobs/test_lane_turns.py."""
ELSEWHERE = (
    {*EXPIRIES}
    | TURNS_IN_LANES
    | RUN_CONTROLS
    | WEBHOOKS
    | EXTRACTIONS
    | FACTS
    | FIRINGS
    | STEERING
    | CHILDREN
    | REDRIVES
    | CHARGES
    | FORGETTING
    | SETS
)
OTHERS = ("router", "tool_registry", "executor")
PASSAGES = 200


def points(service: str) -> list[Any]:
    """Every failpoint of a service, from the registry; the first three times it is reached."""
    ours = [point for point in Failpoint if point.split(".")[0] == service and point not in ELSEWHERE]
    times = (1, 2, 3) if service == "tool_registry" else (1,)
    return kill_points(((point, nth) for point in ours for nth in times), QUICK)


async def test_every_failpoint_belongs_to_a_service_that_is_killed():
    tested = {"executor", "router", "tool_registry", "gateway", "retrieval", "tracing", "notifier"}

    assert {point.split(".")[0] for point in Failpoint} == tested


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform("gateway", "retrieval", "tracing")
    platform.port = free_port()
    platform.fleet.set("gateway", WAYLINE_HTTP_PORT=str(platform.port))
    facts = Facts(name="local-embedding", provider="local", rates=Rates(), dimensions=8)
    provider = await platform.simulate(models={facts.name: facts})
    platform.fleet.set(
        "retrieval",
        WAYLINE_RETRIEVAL_EMBEDDING_MODEL=facts.name,
        WAYLINE_RETRIEVAL_EMBEDDING_BASE_URL=provider.openai_url,
    )
    return platform


async def armed(platform: FaultPlatform, point: Failpoint, nth: int) -> ServiceProcess:
    """The only process of its service, which will die there; the others live."""
    service = point.split(".")[0]
    await platform.fleet.stop(service)
    await platform.fleet.ensure(*(name for name in OTHERS if name != service))
    return await platform.fleet.start(service, point, nth=nth)


@pytest.mark.parametrize(("point", "nth"), points("router"))
async def test_a_router_killed_there_repeats_no_log_ticket_or_settlement(
    platform: FaultPlatform, point: Failpoint, nth: int
):
    plain, asking, after = (f"{point}-{name}".replace(".", "-") for name in ("plain", "asking", "after"))
    await platform.forget_outcome(asking, 1, "1")

    doomed = await armed(platform, point, nth)
    await platform.submit_plan(plain, says("done"))
    await platform.submit_plan(asking, calls(ONCE), says("decided"), session=point)
    if point in WAKES | TURNS:
        # An executor that hears the answer before it has parked the job goes on, and nobody is woken.
        await platform.wait_until_parked(asking)
    await platform.submit_plan(after, says("after"), session=point)
    if point in TURNS:
        await platform.wait_until_parked(after)
    await platform.until_dead(doomed, plain, asking)
    await platform.fleet.start("router")
    await platform.until_ended(plain, asking, after)
    await platform.until_quiet()

    await platform.check(plain, asking, after)
    await platform.check_turns(asking, after)
    rows = await platform.sql("SELECT state, cap_usd FROM router.reservations WHERE job_id = $1", plain)
    assert [(row["state"], row["cap_usd"]) for row in rows] == [("settled", Decimal("0.10"))]
    assert await platform.dead_letters() == []


@pytest.mark.parametrize("point", kill_points(((point,) for point in EXPIRIES), QUICK))
async def test_an_approval_expires_once_though_its_router_was_killed_there(platform: FaultPlatform, point: Failpoint):
    name = point.replace(".", "-")
    await platform.fleet.ensure("router")
    await platform.bus.ask(PutAgent(tenant=TENANT, name="careful", config=AgentConfig(ask="writes")), Agent)
    doomed = await armed(platform, point, 1)
    await platform.fleet.stop("executor")
    await platform.fleet.start("executor", env={"WAYLINE_EXECUTOR_DECISION_TTL_S": "1"})
    await platform.submit_plan(name, calls(ONCE), says("done"), agent="careful")

    await platform.until_dead(doomed)
    await platform.fleet.start("router")

    assert (await platform.wait_for(name)).status == "completed"
    await platform.until_quiet()
    await platform.check(name)
    decided = [event.decision for event in await platform.events(name) if isinstance(event, ApprovalDecided)]
    assert decided == ["expired"]
    assert platform.effects.count("pay_once", f"{TENANT}/{name}/1/1") == 0
    assert await platform.dead_letters() == []
    await platform.fleet.stop("executor")


@pytest.mark.parametrize(("point", "nth"), points("tool_registry"))
async def test_a_registry_killed_there_never_lets_a_once_tool_act_twice(
    platform: FaultPlatform, point: Failpoint, nth: int
):
    job_id = f"{point}-{nth}".replace(".", "-")

    doomed = await armed(platform, point, nth)
    await platform.submit_plan(job_id, calls(*EVERY_EFFECT), says("done"))
    await platform.until_dead(doomed, job_id)
    await platform.fleet.start("tool_registry")
    await platform.until_ended(job_id)
    await platform.until_quiet()

    await platform.check(job_id)
    rows = await platform.sql("SELECT tool, key, state, attempt FROM tools.calls WHERE job_id = $1", job_id)
    assert {row["state"] for row in rows} == {"finished"}
    for row in rows:
        acted = platform.effects.count(row["tool"].removeprefix("effects__"), row["key"])
        # Every execution had the lease; the human's word stands for at most one that nobody saw.
        assert acted <= row["attempt"], dict(row)
        if row["tool"] != ONCE:
            assert acted >= 1, dict(row)


@pytest.mark.parametrize(("point", "nth"), points("gateway"))
async def test_a_gateway_killed_there_and_asked_again_has_made_one_job(
    platform: FaultPlatform, point: Failpoint, nth: int
):
    own = {"agent": "assistant", "input": '[{"text": "done"}]', "options": {"model": "chat/x"}}
    job_id, key = f"{point}-{nth}".replace(".", "-"), {"Idempotency-Key": f"key-{point}"}
    jobs = f"http://127.0.0.1:{platform.port}/v1/jobs"

    before = await reservations(platform)
    doomed = await armed(platform, point, nth)
    async with httpx2.AsyncClient() as client:
        with pytest.raises(httpx2.TransportError):
            await client.post(jobs, json={**own, "job_id": job_id})
        await platform.until_dead(doomed)
        again = await platform.fleet.start("gateway", point)
        with pytest.raises(httpx2.TransportError):
            await client.post(jobs, json=own, headers=key)
        await platform.until_dead(again)

        await platform.fleet.start("gateway")
        first = await client.post(jobs, json={**own, "job_id": job_id})
        second = await client.post(jobs, json=own, headers=key)
        third = await client.post(jobs, json=own, headers=key)
    # 200 where the job has ended by now.
    assert {first.status_code, second.status_code, third.status_code} <= {200, 202}
    assert first.json()["job_id"] == job_id
    assert second.json()["job_id"] == third.json()["job_id"] != job_id
    await platform.until_ended(job_id, second.json()["job_id"])
    await platform.until_quiet()

    await platform.check(job_id, second.json()["job_id"])
    assert await reservations(platform) == before + 2


async def reservations(platform: FaultPlatform) -> int:
    return (await platform.sql("SELECT count(*) AS n FROM router.reservations"))[0]["n"]


@pytest.mark.parametrize(("point", "nth"), points("retrieval"))
async def test_a_document_whose_indexer_is_killed_there_is_indexed_once(
    platform: FaultPlatform, point: Failpoint, nth: int
):
    document_id = f"{point}-{nth}".replace(".", "-")
    text = "\n\n".join(f"Passage {n} of {point} tells of the sea and of its {n} tides." for n in range(PASSAGES))

    doomed = await armed(platform, point, nth)
    message = IndexDocument(tenant=TENANT, document_id=document_id, name="sea.txt", text=text)
    await platform.bus.publish(message, msg_id=document_id)
    await platform.until_dead(doomed)
    await platform.fleet.start("retrieval")

    async def indexed() -> Document | None:
        try:
            document = await platform.bus.ask(GetDocument(tenant=TENANT, document_id=document_id), Document)
        except WaylineError:
            return None
        return document if document.status == "ready" else None

    async def acked() -> bool:
        return (await platform.bus.js.stream_info("INDEX")).state.messages == 0

    document = await until(indexed, within=60, why="the document is ready")
    await until(acked, within=60, why="its message is acked")
    (row,) = await platform.sql("SELECT count(*) AS n FROM retrieval.chunks WHERE document_id = $1", document_id)
    assert row["n"] == document.chunks_total == document.chunks_done > 1  # type: ignore
    assert await platform.dead_letters() == []


@pytest.mark.parametrize(("point", "nth"), points("tracing"))
async def test_tracing_killed_there_still_comes_to_the_logs_own_totals(
    platform: FaultPlatform, point: Failpoint, nth: int
):
    job_id = f"{point}-{nth}".replace(".", "-")

    doomed = await armed(platform, point, nth)
    await platform.submit_plan(job_id, calls(*EVERY_EFFECT), says("done"))
    await asyncio.gather(platform.until_dead(doomed), platform.until_ended(job_id))
    await platform.fleet.start("tracing")

    await platform.until_traced(job_id)
    await platform.check(job_id)
