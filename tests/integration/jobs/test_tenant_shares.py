"""A greedy tenant beside a modest one: the greedy one is refused at its share, and the modest one's jobs run."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

import httpx2
import pytest
from nats.js.errors import APIError

from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.chassis.connection.dead_letters import BODY_MAX_BYTES
from wayline.chassis.stream_limits import Limits
from wayline.chassis.topology import STREAMS
from wayline.contracts.errors import Unavailable
from wayline.contracts.knowledge import IndexDocument
from wayline.contracts.tenants import CreateTenant, GetTenant, Tenant
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until

from .conftest import chatting

SHARE_BYTES = 8 * 1024 * 1024
ZONES = sorted(available_timezones())
LARGE = "x" * 100_000


async def start(platform: Platform, *names: str, **limits: Any) -> None:
    """Start services, the router with these limits, and make the tenant `acme`."""
    settings = {"router": RouterSettings(**limits), "gateway": GatewaySettings(http_port=0)}
    await platform.start("router", *names, **settings)
    await platform.bus.ask(CreateTenant(tenant="acme"), Tenant)


async def full(platform: Platform, tenant: str = "default") -> bool:
    try:
        return (await platform.bus.ask(GetTenant(tenant=tenant), Tenant)).full is not None
    except Unavailable:
        return False


async def fill(platform: Platform, *, large: str = LARGE) -> None:
    """Submit large jobs as tenant `default` until it may begin no more."""
    sent = 0

    async def refused() -> bool:
        nonlocal sent
        for _ in range(4):
            await platform.publish({"agent": "assistant", "input": large, "job_id": f"greedy-{sent}"})
            sent += 1
        await platform.wait_until_empty("SUBMIT")
        return await full(platform)

    await until(refused, why="the tenant has its share")


async def admitted(platform: Platform, job_id: str, *, tenant: str) -> bool:
    """Submit a small job; the answer is whether it was let in."""
    await platform.publish({"agent": "assistant", "input": "go", "job_id": job_id}, tenant=tenant)
    await platform.wait_until_empty("SUBMIT")
    return (await platform.job(job_id, tenant)).routing.route is not None


async def test_a_tenant_at_its_stored_bytes_share_is_refused_alone(platform: Platform):
    await start(platform, stored_per_tenant_max_bytes=SHARE_BYTES)

    await fill(platform)
    await platform.wait_until_empty("SUBMIT")
    for n in range(20):
        await platform.publish({"agent": "assistant", "input": LARGE, "job_id": f"late-{n}"})
    await platform.wait_until_empty("SUBMIT")
    letters = [letter for letter in await platform.dead_letters() if letter["Wayline-Dead-Code"] == "tenant_full"]

    assert len(letters) >= 20
    assert "WAYLINE_ROUTER_STORED_PER_TENANT_MAX_BYTES" in letters[0]["Wayline-Dead-Reason"]
    refused = (await platform.job("late-19")).life.submitted
    assert refused is None or refused.input == "", "what a refused job asks for is not stored"
    assert await admitted(platform, "modest", tenant="acme")


async def test_an_accepted_job_repeated_by_a_full_tenant_is_unchanged(platform: Platform):
    await start(platform, stored_per_tenant_max_bytes=SHARE_BYTES)
    await fill(platform)

    await platform.publish({"agent": "assistant", "input": LARGE, "job_id": "greedy-0"})
    await platform.publish({"agent": "assistant", "input": LARGE, "job_id": "late"})
    await platform.publish({"agent": "assistant", "input": LARGE, "job_id": "late"})
    await platform.wait_until_empty("SUBMIT")

    assert (await platform.job("greedy-0")).life.error is None
    assert (await platform.job("late")).routing.route is None


async def test_a_running_job_ends_partially_once_its_tenant_is_full(platform: Platform):
    steps = 0

    def ever_on(_: object) -> Say:
        nonlocal steps
        steps += 1
        # Always another call, so that the job does not end as a loop.
        return Say(
            text=f"{steps} {'x' * 4_000}", tools=(("get_current_time", {"timezone": ZONES[steps % len(ZONES)]}),)
        )

    async with ChatServer(ever_on) as chat:
        await start(platform, "tool_registry", stored_per_tenant_max_bytes=64 * 1024)
        await platform.start("executor", executor=chatting(chat))
        options = {"model": "chat/m", "max_steps": 1000}
        await platform.publish({"agent": "assistant", "input": "go", "job_id": "endless", "options": options})
        ended = await platform.wait_for("endless", within=60)

    assert (ended.status, ended.partial) == ("completed", True)
    assert "WAYLINE_ROUTER_STORED_PER_TENANT_MAX_BYTES" in (ended.reason or "")
    assert steps < 1000


async def test_over_http_only_the_full_tenant_gets_a_429(platform: Platform):
    await start(platform, "gateway", stored_per_tenant_max_bytes=SHARE_BYTES)
    await fill(platform)
    url = f"http://127.0.0.1:{platform.http_port}/v1"

    async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
        job = await http.post(f"{url}/jobs", json={"agent": "assistant", "input": "go"})
        agent = await http.put(f"{url}/agents/large", json={"description": LARGE * 3})
        look = await http.get(f"{url}/jobs/greedy-0")

    assert (job.status_code, job.json()["code"], "retry-after" in job.headers) == (429, "tenant_full", True)
    assert (agent.status_code, agent.json()["code"]) == (429, "tenant_full")
    assert look.status_code == 200
    assert await admitted(platform, "modest", tenant="acme")


async def test_unfinished_jobs_of_one_tenant_are_bounded_and_anothers_run(platform: Platform):
    await start(platform, unfinished_per_tenant_max=5)
    for n in range(8):
        await platform.publish({"agent": "assistant", "input": "go", "job_id": f"greedy-{n}"})
    await platform.wait_until_empty("SUBMIT")
    await platform.publish({"agent": "assistant", "input": "What is a job?", "job_id": "modest"}, tenant="acme")
    await platform.wait_until_empty("SUBMIT")

    jobs = [await platform.job(f"greedy-{n}") for n in range(8)]
    refusals = [job.life.error.message for job in jobs if job.life.error is not None]
    assert len(refusals) >= 3 and "WAYLINE_ROUTER_UNFINISHED_PER_TENANT_MAX" in refusals[0]
    assert await platform.count("RUN") == 8 - len(refusals) + 1, "and the other tenant's one"
    await platform.start("executor", "tool_registry")
    await platform.wait_for("modest", tenant="acme")

    async def again() -> bool:
        return not await full(platform)

    await until(again, why="the ended jobs make room")


@pytest.mark.parametrize("platform", [Limits(dead_max_per_tenant=3, memory=True)], indirect=True)
async def test_dead_letters_of_one_tenant_push_out_only_its_own(platform: Platform):
    await start(platform)
    await platform.publish(b"modest", tenant="acme")
    await platform.wait_until_empty("SUBMIT")

    for n in range(8):
        await platform.publish(b"greedy %d" % n)
    await platform.wait_until_empty("SUBMIT")

    info = await platform.bus.js.stream_info("DEAD", subjects_filter="dead.>")
    assert info.state.subjects == {"dead.SUBMIT.router.acme": 1, "dead.SUBMIT.router.default": 3}


def test_one_tenants_messages_fill_only_a_share_of_each_stream():
    found = {stream.name: stream for stream in STREAMS}
    submit, index, dead = found["SUBMIT"], found["INDEX"], found["DEAD"]
    letter = BODY_MAX_BYTES + 64 * 1024

    assert submit.max_msg_size is not None and submit.max_msg_size > 0, "-1 would be no bound"
    for stream, bytes_each, share in ((submit, submit.max_msg_size, 2), (index, MESSAGE_MAX, 4), (dead, letter, 8)):
        assert stream.max_bytes and stream.max_msgs_per_subject
        assert stream.max_msgs_per_subject * bytes_each <= stream.max_bytes / share


async def test_a_large_submission_passes_the_gateway_only(platform: Platform):
    await start(platform, "gateway")
    job = {"agent": "assistant", "input": LARGE * 5, "job_id": "large"}

    with pytest.raises(APIError, match="exceeds maximum"):
        await platform.publish(job)
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
        accepted = await http.post(f"http://127.0.0.1:{platform.http_port}/v1/jobs", json=job)
    await platform.wait_until_empty("SUBMIT")

    submitted = (await platform.job("large")).life.submitted
    assert accepted.status_code == 202
    assert submitted is not None and submitted.input == LARGE * 5


@pytest.mark.parametrize("platform", [Limits(index_max_per_tenant=2, memory=True)], indirect=True)
async def test_waiting_documents_of_one_tenant_are_bounded_and_anothers_are_queued(platform: Platform):
    await start(platform, "gateway")
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
        url = f"http://127.0.0.1:{platform.http_port}/v1/documents"
        greedy = [await http.post(url, json={"name": f"{n}.txt", "text": f"Text {n}."}) for n in range(3)]
    modest = IndexDocument(tenant="acme", document_id="d1", name="modest.txt", text="Text.")

    await platform.bus.publish(modest, msg_id="d1")

    assert [answer.status_code for answer in greedy] == [202, 202, 429]
    assert await platform.count("INDEX") == 3
