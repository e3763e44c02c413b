"""The bus is a front door: a bare message is a job."""

import orjson

from wayline.contracts import ids
from wayline.contracts.jobs import RunJob
from wayline.journal import Head, JobLog
from wayline.simulator.chat_server import ChatServer, Say

from .conftest import chatting


async def test_a_bare_message_becomes_a_job_and_gets_its_reply(platform):
    await platform.start("router", "executor", "tool_registry", "retrieval")
    inbox = platform.client.new_inbox()
    replies = await platform.client.subscribe(inbox)

    await platform.publish(
        {"agent": "assistant", "input": "What is a lease?"}, {"Nats-Msg-Id": "q1", "Wayline-Reply-To": inbox}
    )

    told = orjson.loads((await replies.next_msg(timeout=20)).data)["job"]
    assert (told["job_id"], told["status"], told["cost_usd"]) == ("q1", "completed", "0")
    assert "knowledge base does not answer" in told["answer"]
    await platform.wait_until_empty("SUBMIT", "RUN")
    assert await platform.dead_letters() == []


async def test_a_first_ticket_brings_the_first_record_with_it(platform):
    await platform.start("router")
    await platform.publish({"agent": "assistant", "input": "What is a lease?"}, {"Nats-Msg-Id": "q1"})
    await platform.wait_until_empty("SUBMIT")

    ticket = RunJob.from_wire((await platform.bus.js.get_msg("RUN", 1)).data, "jobs.run.interactive.default")
    head = await JobLog(platform.bus, "default", "q1").last()
    assert ticket.record is not None
    assert Head.brought(ticket.at, ticket.record) == head._replace(msg_id="")


async def test_the_same_message_id_twice_is_one_job(platform):
    await platform.start("router", "executor", "tool_registry", "retrieval")
    body = {"agent": "assistant", "input": "What is a lease?"}

    await platform.publish(body, {"Nats-Msg-Id": "q1"})
    await platform.wait_for("q1")
    await platform.publish(body, {"Nats-Msg-Id": "q1"})
    await platform.publish({**body, "job_id": "q1"})
    await platform.wait_until_empty("SUBMIT", "RUN")

    events = await platform.events("q1")
    assert [event.type for event in events].count("job.submitted") == 1
    assert events[-1].type == "job.completed"
    assert await platform.dead_letters() == []


async def test_an_id_that_is_no_job_id_is_hashed_into_one(platform):
    await platform.start("router", "executor", "tool_registry", "retrieval")

    await platform.publish({"agent": "assistant", "input": "hello"}, {"Nats-Msg-Id": "order #1 / Zürich"})

    assert (await platform.wait_for(ids.job_id_from("order #1 / Zürich"))).status == "completed"


async def test_a_callers_trace_is_a_link_and_never_our_parent(platform):
    await platform.start("router", "executor", "tool_registry", "retrieval")
    caller = f"00-{'ab' * 16}-{'cd' * 8}-01"

    await platform.publish({"agent": "assistant", "input": "hi", "job_id": "q1"}, {"traceparent": caller})
    await platform.wait_for("q1")

    first = (await platform.events("q1"))[0]
    assert first.caller == caller
    assert first.trace.trace_id == ids.trace_id("default", "q1")


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


async def test_a_two_megabyte_input_travels_by_claim_check(platform):
    from wayline.contracts.jobs import SubmitJob

    await platform.start("router", "executor", "tool_registry", "retrieval")
    text = "What is a lease? " * 120_000

    await platform.bus.publish(SubmitJob(tenant="default", agent="assistant", input=text, job_id="big"), msg_id="big")

    # The offline model's search refuses so long a query; that is the job's business, the input came through whole.
    await platform.wait_for("big")
    assert (await platform.job("big")).life.submitted.input == text


async def test_a_dry_run_on_the_bus_returns_the_route_only(platform):
    await platform.start("router", "executor", "tool_registry", "retrieval")
    inbox = platform.client.new_inbox()
    replies = await platform.client.subscribe(inbox)

    await platform.publish(
        {"agent": "assistant", "input": "x", "job_id": "d1", "options": {"dry_run": True}}, {"Wayline-Reply-To": inbox}
    )

    told = orjson.loads((await replies.next_msg(timeout=20)).data)["job"]
    assert (told["status"], told["steps"], told["route"]["provider"]) == ("completed", 0, "offline")
    assert [event.type for event in await platform.events("d1")] == ["job.submitted", "job.routed", "job.completed"]
    await platform.wait_until_empty("SUBMIT", "RUN")


async def test_the_time_and_a_style_reach_the_model_beside_the_input(platform):
    async with ChatServer(lambda _: Say(text="ahoy")) as chat:
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat))

        await platform.submit("s1", "Say hello", model="chat/m", style="like a pirate")
        await platform.wait_for("s1")

    [(_, body)] = chat.calls
    text, sent, style = body["messages"][1]["content"].split("\n\n")
    assert (text, style) == ("Say hello", "Answer in this style: like a pirate")
    assert sent.startswith("Sent on ") and sent.endswith(" UTC.")
