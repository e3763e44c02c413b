"""Bad input: a clear answer, a dead letter, nothing lost, and neighbours unharmed."""

from collections.abc import AsyncIterator
from secrets import token_hex

import orjson
import pytest
import pytest_asyncio

from wayline.chassis.stream_limits import Limits
from wayline.contracts.agents import DeleteAgent, Deleted
from wayline.contracts.errors import Full
from wayline.contracts.jobs import SubmitJob
from wayline.journal import JobLog
from wayline.telemetry import metrics
from wayline.testkit import Platform, until

from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

GOOD = {"agent": "assistant", "input": "hello"}
CLAIMED = {"Wayline-Claims": "1"}


class Shared:
    """The platform of all tests that put something aside, and what this one has put aside."""

    def __init__(self, platform: Platform, *, letters: int) -> None:
        self.platform = platform
        self._letters = letters

    async def letters(self) -> list[dict[str, str]]:
        """Return the headers of the dead letters since the test began."""
        return (await self.platform.dead_letters())[self._letters :]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(module_platform: Platform) -> AsyncIterator[Platform]:
    """Router, executor and tools for all tests that neither stop them nor take away what others need."""
    await module_platform.start("router", "executor", "tool_registry", "retrieval")
    yield module_platform
    assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module")
async def shared(running: Platform) -> Shared:
    # What the test before has sent is put aside by then.
    await running.wait_until_empty("SUBMIT")
    return Shared(running, letters=len(await running.dead_letters()))


@pytest.mark.parametrize(
    ("body", "headers", "code", "says"),
    [
        (b"{not json", {}, "invalid_message", "not JSON"),
        (b"[]", {}, "invalid_message", "must be a JSON object"),
        ({"agent": "assistant"}, {}, "invalid_message", "input: Field required"),
        ({**GOOD, "agent": 7}, {}, "invalid_message", "agent: Input should be a valid string"),
        ({**GOOD, "options": {"max_stepz": 3}}, {}, "invalid_message", "options.max_stepz"),
        ({**GOOD, "tenant": "acme"}, {}, "invalid_message", "the subject says 'default'"),
        (GOOD, {"Wayline-Tenant": "acme"}, "invalid_message", "Wayline-Tenant is 'acme'"),
        (GOOD, {"Wayline-Schema": "SubmitJob/9"}, "invalid_message", "SubmitJob/9"),
        (GOOD, {"Wayline-Reply-To": "events.default.x"}, "invalid_message", "must begin with _INBOX."),
        (GOOD, {"Wayline-Reply-To": "replies.acme.x"}, "invalid_message", "replies.default."),
        (GOOD, {"Wayline-Reply-To": "_INBOX.>"}, "invalid_message", "must begin with _INBOX."),
        (GOOD, {"Wayline-Reply-To": "_INBOX.a\tb"}, "invalid_message", "no white space"),
        (GOOD, {"Wayline-Reply-To": "_INBOX.a\x01b"}, "invalid_message", "no white space"),
        (GOOD, {"Wayline-Reply-To": "_INBOX.a..b"}, "invalid_message", "empty part"),
        (GOOD, {"Wayline-Reply-To": "_INBOX." + "a" * 300}, "invalid_message", "more than 255 characters"),
        ({**GOOD, "input": {"$claim": "acme/c1/00"}, "job_id": "c1"}, CLAIMED, "invalid_message", "not within"),
        (
            {**GOOD, "input": {"$claim": "default/c9/00"}, "job_id": "c2"},
            CLAIMED,
            "invalid_message",
            "not within",
        ),
        ({**GOOD, "input": {"$claim": "default/-/00"}}, CLAIMED, "invalid_message", "not within"),
        (
            {**GOOD, "input": [{"$claim": "default/c3/00"}] * 65, "job_id": "c3"},
            CLAIMED,
            "invalid_message",
            "64 objects",
        ),
        ({**GOOD, "job_id": "a"}, {"Nats-Msg-Id": "b"}, "invalid_message", "job_id in the body is 'a'"),
        ({**GOOD, "agent": "a\0"}, {}, "invalid_message", "agent has a NUL character"),
        ({**GOOD, "session_id": "\0"}, {}, "invalid_message", "session_id has a NUL character"),
        ({**GOOD, "user_id": "ann\0"}, {}, "invalid_message", "user_id has a NUL character"),
        ({**GOOD, "agent": "nobody"}, {}, "unknown_agent", "no agent 'nobody'"),
        ({**GOOD, "options": {"model": "gpt"}}, {}, "invalid_model", "provider/model"),
    ],
)
async def test_a_bad_submission_is_put_aside_with_its_reason(shared, body, headers, code, says):
    platform, neighbour = shared.platform, f"neighbour-{token_hex(4)}"

    await platform.publish(body, headers)
    await platform.submit(neighbour)

    assert (await platform.wait_for(neighbour)).status == "completed"
    await platform.wait_until_empty("SUBMIT")
    [letter] = await shared.letters()
    assert letter["Wayline-Dead-Code"] == code
    assert says in letter["Wayline-Dead-Reason"]
    assert letter["Wayline-Dead-Subject"] == "jobs.submit.default"


@pytest.mark.parametrize("tenant", ["nobody", "No_Slug"])
async def test_an_unknown_tenant_is_put_aside_and_gets_no_log(shared, tenant):
    platform = shared.platform

    await platform.publish({**GOOD, "job_id": "unknown"}, tenant=tenant)
    await platform.wait_until_empty("SUBMIT")

    [letter] = await shared.letters()
    assert (letter["Wayline-Dead-Code"], letter["Wayline-Tenant"]) == ("unknown_tenant", tenant)
    assert await platform.events("unknown", tenant) == []


async def test_a_refused_job_with_a_readable_id_gets_log_and_reply(running):
    inbox = running.client.new_inbox()
    replies = await running.client.subscribe(inbox)

    await running.publish({"agent": "nobody", "input": "x", "job_id": "readable"}, {"Wayline-Reply-To": inbox})

    await replies.next_msg(timeout=10)
    refused = await running.wait_for("readable")
    assert (refused.status, refused.error.code) == ("failed", "unknown_agent")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"agent": "nobody", "input": "x"}, "unknown_agent"),
        ({**GOOD, "options": {"model": "gpt"}}, "invalid_model"),
        ({**GOOD, "job_id": "not allowed!"}, "invalid_message"),
        ({**GOOD, "agent": "a\0", "user_id": "ann"}, "invalid_message"),
        ({**GOOD, "user_id": "ann\0"}, "invalid_message"),
        (b"{not json", "invalid_message"),
    ],
)
async def test_a_refused_submission_without_an_id_is_answered_and_holds_nothing(shared, body, code):
    platform = shared.platform
    before = await held(platform)
    inbox = platform.client.new_inbox()
    replies = await platform.client.subscribe(inbox)

    await platform.publish(body, {"Wayline-Reply-To": inbox})

    told = orjson.loads((await replies.next_msg(timeout=10)).data)["job"]
    assert (told["status"], told["error"]["code"]) == ("failed", code)
    await platform.wait_until_empty("SUBMIT")
    [letter] = await shared.letters()
    assert "before it was put aside" not in letter["Wayline-Dead-Reason"]
    assert await held(platform) <= before


async def held(platform: Platform) -> set[str]:
    """Return the jobs for which money is held."""
    async with platform.superuser() as conn:
        rows = await conn.fetch("SELECT job_id FROM router.reservations WHERE state <> 'settled'")
    return {row["job_id"] for row in rows}


async def test_a_submission_of_an_unknown_tenant_is_answered(running):
    inbox = running.bus.nc.new_inbox()
    replies = await running.bus.nc.subscribe(f"replies.nobody.{inbox}")

    await running.publish(GOOD, {"Wayline-Reply-To": f"replies.nobody.{inbox}"}, tenant="nobody")

    told = orjson.loads((await replies.next_msg(timeout=10)).data)["job"]
    assert told["error"]["code"] == "unknown_tenant"


async def test_a_conflict_is_replied_to_its_sender(running):
    await running.submit("replied")
    await running.wait_for("replied")
    inbox = running.client.new_inbox()
    replies = await running.client.subscribe(inbox)

    await running.publish({**GOOD, "input": "another", "job_id": "replied"}, {"Wayline-Reply-To": inbox})

    told = orjson.loads((await replies.next_msg(timeout=10)).data)["job"]
    assert (told["job_id"], told["error"]["code"]) == ("replied", "job_id_conflict")
    assert (await running.wait_for("replied")).status == "completed"


@pytest.mark.parametrize(
    "headers",
    [
        {"traceparent": "00-\t-\x01-zz", "tracestate": "a\tb=,,=\x02"},
        {"Wayline-Caller": "00-" + "0" * 5_000},
        {"Nats-Msg-Id": "a\tb \x01*>" + "x" * 2_000},
    ],
)
async def test_a_job_runs_whatever_its_senders_other_headers_hold(shared, headers):
    platform = shared.platform
    inbox = platform.client.new_inbox()
    replies = await platform.client.subscribe(inbox)

    await platform.publish(GOOD, {**headers, "Wayline-Reply-To": inbox})

    assert orjson.loads((await replies.next_msg(timeout=20)).data)["job"]["status"] == "completed"
    await platform.wait_until_empty("SUBMIT", "RUN")
    assert await shared.letters() == []


async def test_a_repeated_refused_job_is_no_conflict(shared):
    platform = shared.platform
    body = {"agent": "nobody", "input": "x", "job_id": "refused", "user_id": "ann", "options": {"max_steps": 3}}
    await platform.publish(body)
    refused = await platform.wait_for("refused")
    await platform.wait_until_empty("SUBMIT")
    before = await platform.events("refused")

    await platform.publish(body)
    await platform.wait_until_empty("SUBMIT")

    assert [letter["Wayline-Dead-Code"] for letter in await shared.letters()] == ["unknown_agent"]
    assert await platform.events("refused") == before
    assert (refused.user_id, before[0].job.options.max_steps) == ("ann", 3)


async def test_an_id_reused_for_another_job_is_a_conflict(shared):
    platform = shared.platform

    await platform.submit("reused", "the first")
    await platform.wait_for("reused")
    before = await platform.events("reused")

    await platform.submit("reused", "another")
    await platform.wait_until_empty("SUBMIT")

    [letter] = await shared.letters()
    assert letter["Wayline-Dead-Code"] == "job_id_conflict"
    assert await platform.events("reused") == before


@pytest.mark.asyncio(loop_scope="function")
async def test_a_repeated_job_whose_agent_is_gone_changes_nothing(platform):
    await platform.start("router", "executor", "tool_registry", "retrieval")
    await platform.submit("j1", "the first")
    await platform.wait_for("j1")
    before = await platform.events("j1")
    await platform.bus.ask(DeleteAgent(tenant="default", name="assistant"), Deleted)

    await platform.submit("j1", "the first")
    await platform.wait_until_empty("SUBMIT")

    assert await platform.dead_letters() == []
    assert await platform.events("j1") == before


async def test_a_job_reusing_a_refused_id_holds_no_money(running):
    await running.publish({"agent": "nobody", "input": "x", "job_id": "reusing"})
    await running.wait_for("reusing")

    await running.submit("reusing", "another")
    await running.wait_until_empty("SUBMIT")

    reserved = "SELECT count(*) FROM router.reservations WHERE job_id = 'reusing' AND state = 'reserved'"
    async with running.superuser() as admin:
        assert await admin.fetchval(reserved) == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_within_the_duplicate_window_the_bus_reports_a_duplicate(platform):
    subject = "jobs.submit.default"

    await platform.bus.js.publish(subject, b'{"agent":"assistant","input":"one"}', headers={"Nats-Msg-Id": "j1"})
    again = await platform.bus.js.publish(
        subject, b'{"agent":"assistant","input":"two"}', headers={"Nats-Msg-Id": "j1"}
    )

    assert again.duplicate


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("platform", [Limits(submit_max_per_tenant=2, memory=True)], indirect=True)
async def test_a_full_queue_refuses_one_tenant_and_recovers_without_help(platform):
    async def publish(job_id: str, tenant: str = "default") -> None:
        job = SubmitJob(tenant=tenant, agent="assistant", input="x", job_id=job_id)
        await platform.bus.publish(job, msg_id=job_id)

    await publish("j1")
    await publish("j2")
    with pytest.raises(Full, match="send it again"):
        await publish("j3")
    await publish("j4", "other")

    await platform.start("router", "executor", "tool_registry", "retrieval")
    await platform.wait_for("j1")
    await platform.wait_for("j2")
    await publish("j3")
    assert (await platform.wait_for("j3")).status == "completed"


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("platform", [Limits(max_bytes={"EVENTS": 400_000}, memory=True)], indirect=True)
async def test_new_jobs_wait_without_loss_while_the_log_is_nearly_full(platform):
    log = JobLog(platform.bus, "default", "old")
    await platform.bus.js.publish("events.default.old", b"x" * 350_000)
    await platform.start("router", "executor", "tool_registry", "retrieval")

    await platform.submit("j1")

    def waiting() -> bool:
        return metrics.waiting.labels("router", "jobs.submit.{tenant}")._value.get() > 0

    await until(waiting, why="the router waits for room")
    assert await platform.events("j1") == []
    await platform.bus.js.purge_stream("EVENTS", subject=log.subject)
    assert (await platform.wait_for("j1")).status == "completed"
    assert await platform.dead_letters() == []


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("platform", [Limits(max_bytes={"EVENTS": 400_000}, memory=True)], indirect=True)
async def test_a_repeated_job_does_not_wait_for_a_nearly_full_log(platform):
    await platform.start("router", "executor", "tool_registry", "retrieval")
    await platform.submit("j1", "the first")
    await platform.wait_for("j1")
    before = await platform.events("j1")
    await platform.bus.js.publish("events.default.old", b"x" * 350_000)
    # One that has not looked how full it is.
    await platform.stop("router")
    await platform.start("router")

    await platform.submit("j1", "the first")
    await platform.wait_until_empty("SUBMIT")

    assert await platform.events("j1") == before
