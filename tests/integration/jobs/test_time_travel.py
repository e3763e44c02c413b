"""Forks of whole jobs: nothing shared is done or paid for twice, over HTTP and over the bus."""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.executor.replay import replay
from wayline.journal import JobLog, fold, prefix_hash, read_export
from wayline.simulator.chat_server import Say
from wayline.testkit import Platform, until

from .conftest import http_with_key
from .stage import Stage, open_stage

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


def paying(body) -> Say:
    """Look, pay, then say what the last result was."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if not results:
        return Say(tools=(("effects__look_read", {"key": "a"}),))
    if len(results) == 1:
        return Say(tools=(("effects__pay_once", {"key": "a"}),))
    return Say(text=f"{body['model']}: {results[-1]}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(
        module_platform, tmp_path_factory.mktemp("effects"), services=("gateway", "tracing")
    ) as stage:
        yield stage


async def paid(stage: Stage) -> Platform:
    """Run a job that looks and pays to its end."""
    platform = await stage.play(paying)
    await platform.submit("j1", "pay", model="chat/m")
    ended = await platform.wait_for("j1")
    assert ended.status == "completed", ended
    return platform


def last_seq(events: list[e.Event], kind: type[e.Event]) -> int:
    return [event.seq for event in events if isinstance(event, kind)][-1]


async def test_a_fork_goes_on_with_another_result_and_pays_nothing_again(stage: Stage):
    platform = await paid(stage)
    events = await platform.events("j1")
    http = await http_with_key(platform)
    after = last_seq(events, e.ToolCompleted)
    body = {"after": after, "tool_result": {"content": "the card is blocked", "failed": True}, "job_id": "f1"}

    answer = await http.post("/v1/jobs/j1/fork", params={"wait": 30}, json=body)

    assert answer.status_code == 200, answer.text
    job = answer.json()
    assert (job["answer"], job["steps"]) == ("m: the card is blocked", 3)
    assert job["origin"]["job_id"] == "j1"
    values = (await http.get("/v1/jobs/j1/export")).json()["events"]
    assert job["origin"] == {"job_id": "j1", "seq": after, "hash": prefix_hash(values, after)}
    assert (stage.effects.count("look_read"), stage.effects.count("pay_once")) == (1, 1)
    assert [call[0] for call in stage.chat.calls[3:]] == [f"{platform.tenant}/f1/3/m1"]
    file = (await http.get("/v1/jobs/f1/export")).json()
    assert replay(read_export(file)).divergence is None
    again = await http.post("/v1/jobs/j1/fork", params={"wait": 30}, json=body)
    assert (again.status_code, len(stage.chat.calls)) == (200, 4)
    refused = await http.post("/v1/jobs/j1/fork", json={"after": 3, "tool_result": {"content": "x"}})
    assert (refused.status_code, refused.json()["code"]) == (422, "fork_invalid")


async def test_a_fork_over_the_bus_takes_another_model_and_is_linked(stage: Stage):
    platform = await paid(stage)
    events = await platform.events("j1")
    fork = {"job_id": "j1", "after": last_seq(events, e.ToolCompleted)}
    body = {"agent": "assistant", "input": "pay", "job_id": "f1", "fork": fork, "options": {"model": "chat/n"}}

    await asyncio.gather(*(platform.publish(body) for _ in range(3)))

    ended = await platform.wait_for("f1")
    assert ended.answer is not None
    assert ended.answer.startswith("n: ")
    assert stage.effects.count("pay_once") == 1
    log = await platform.events("f1")
    assert [event.type for event in log[:3]] == ["job.submitted", "job.routed", "job.forked"]
    assert [event.type for event in log].count("job.forked") == 1
    assert fold(log).money.costs.tool == {}
    http = await http_with_key(platform)
    link = {"trace_id": ids.trace_id(platform.tenant, "j1"), "span_id": ids.job_span(platform.tenant, "j1")}

    async def linked() -> bool:
        answer = await http.get("/v1/jobs/f1/trace")
        return answer.status_code == 200 and link["span_id"] in orjson.dumps(answer.json()).decode()

    await until(linked, why="the fork's trace links its origin's")


async def test_a_fork_that_cannot_be_ends_as_a_refused_job(stage: Stage):
    platform = await stage.play(paying)

    await platform.publish({"agent": "assistant", "input": "x", "job_id": "f1", "fork": {"job_id": "none"}})
    ended = await platform.wait_for("f1")

    assert ended.error is not None
    assert (ended.status, ended.error.code) == ("failed", "not_found")
    head = await JobLog(platform.bus, platform.tenant, "f1").last()
    assert head is not None
