"""The bus is a front door: a bare message is a job."""

from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio

from wayline.contracts import ids
from wayline.contracts.jobs import RunJob
from wayline.journal import Head, JobLog
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform

from .conftest import chatting
from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chat() -> AsyncIterator[ChatServer]:
    async with ChatServer(lambda _: Say(text="ahoy")) as chat:
        yield chat


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(module_platform: Platform, chat: ChatServer) -> AsyncIterator[Platform]:
    """Services for all tests whose jobs have ids of their own."""
    await module_platform.start("router", "executor", "tool_registry", "retrieval", executor=chatting(chat))
    yield module_platform
    assert await differences(module_platform.bus) == []


async def test_a_bare_message_becomes_a_job_and_gets_its_reply(shared):
    inbox = shared.client.new_inbox()
    replies = await shared.client.subscribe(inbox)

    await shared.publish(
        {"agent": "assistant", "input": "What is a lease?"}, {"Nats-Msg-Id": "q1", "Wayline-Reply-To": inbox}
    )

    told = orjson.loads((await replies.next_msg(timeout=20)).data)["job"]
    assert (told["job_id"], told["status"], told["cost_usd"]) == ("q1", "completed", "0")
    assert "knowledge base does not answer" in told["answer"]
    await shared.wait_until_empty("SUBMIT", "RUN")
    assert await shared.dead_letters() == []


@pytest.mark.asyncio(loop_scope="function")
async def test_a_first_ticket_brings_the_first_record_with_it(platform):
    await platform.start("router")
    await platform.publish({"agent": "assistant", "input": "What is a lease?"}, {"Nats-Msg-Id": "q1"})
    await platform.wait_until_empty("SUBMIT")

    ticket = RunJob.from_wire((await platform.bus.js.get_msg("RUN", 1)).data, "jobs.run.interactive.default")
    head = await JobLog(platform.bus, "default", "q1").last()
    assert ticket.record is not None and head is not None
    assert Head.brought(ticket.at, ticket.record) == head._replace(msg_id="")


async def test_the_same_message_id_twice_is_one_job(shared):
    body = {"agent": "assistant", "input": "What is a lease?"}

    await shared.publish(body, {"Nats-Msg-Id": "twice"})
    await shared.wait_for("twice")
    await shared.publish(body, {"Nats-Msg-Id": "twice"})
    await shared.publish({**body, "job_id": "twice"})
    await shared.wait_until_empty("SUBMIT", "RUN")

    events = await shared.events("twice")
    assert [event.type for event in events].count("job.submitted") == 1
    assert events[-1].type == "job.completed"
    assert await shared.dead_letters() == []


async def test_an_id_that_is_no_job_id_is_hashed_into_one(shared):
    await shared.publish({"agent": "assistant", "input": "hello"}, {"Nats-Msg-Id": "order #1 / Zürich"})

    assert (await shared.wait_for(ids.job_id_from("order #1 / Zürich"))).status == "completed"


async def test_a_callers_trace_is_a_link_and_never_our_parent(shared):
    caller = f"00-{'ab' * 16}-{'cd' * 8}-01"

    await shared.publish({"agent": "assistant", "input": "hi", "job_id": "linked"}, {"traceparent": caller})
    await shared.wait_for("linked")

    first = (await shared.events("linked"))[0]
    assert first.caller == caller
    assert first.trace.trace_id == ids.trace_id("default", "linked")


@pytest.mark.asyncio(loop_scope="function")
async def test_two_tenants_may_use_the_same_job_id(platform):
    await platform.start("router", "executor", "tool_registry", "retrieval")
    async with platform.superuser() as conn:
        await conn.execute("INSERT INTO router.tenants VALUES ('acme')")
        await conn.execute(
            "INSERT INTO router.agents (tenant, name, version, config)"
            " SELECT 'acme', name, version, config FROM router.agents"
        )

    for tenant in ("default", "acme"):
        await platform.publish({"agent": "assistant", "input": f"I am {tenant}", "job_id": "same"}, tenant=tenant)

    for tenant in ("default", "acme"):
        await platform.wait_for("same", tenant)
        assert (await platform.job("same", tenant)).life.submitted.input == f"I am {tenant}"


async def test_a_two_megabyte_input_travels_by_claim_check(shared):
    from wayline.contracts.jobs import SubmitJob

    text = "What is a lease? " * 120_000

    await shared.bus.publish(SubmitJob(tenant="default", agent="assistant", input=text, job_id="big"), msg_id="big")

    # The offline model's search refuses so long a query; that is the job's business, the input came through whole.
    await shared.wait_for("big")
    assert (await shared.job("big")).life.submitted.input == text


async def test_a_dry_run_on_the_bus_returns_the_route_only(shared):
    inbox = shared.client.new_inbox()
    replies = await shared.client.subscribe(inbox)

    await shared.publish(
        {"agent": "assistant", "input": "x", "job_id": "d1", "options": {"dry_run": True}}, {"Wayline-Reply-To": inbox}
    )

    told = orjson.loads((await replies.next_msg(timeout=20)).data)["job"]
    assert (told["status"], told["steps"], told["route"]["provider"]) == ("completed", 0, "offline")
    assert [event.type for event in await shared.events("d1")] == ["job.submitted", "job.routed", "job.completed"]
    await shared.wait_until_empty("SUBMIT", "RUN")


async def test_the_time_and_a_style_reach_the_model_beside_the_input(shared, chat):
    await shared.submit("s1", "Say hello", model="chat/m", style="like a pirate")
    await shared.wait_for("s1")

    [(_, body)] = chat.calls
    text, sent, style = body["messages"][1]["content"].split("\n\n")
    assert (text, style) == ("Say hello", "Answer in this style: like a pirate")
    assert sent.startswith("Sent on ") and sent.endswith(" UTC.")
