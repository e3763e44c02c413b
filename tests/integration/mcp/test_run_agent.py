# pyright: reportAttributeAccessIssue=false, reportOptionalOperand=false, reportOptionalSubscript=false
"""`run_agent` over `/mcp`: a job as one tool call."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client, MCPError

from wayline.contracts.jobs import Status
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say as Scripted
from wayline.simulator import rounds
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer

from ..jobs.conftest import chatting, until_listed, with_tools
from ..jobs.four_models import CLAUDE, endpoints
from .conftest import Door, open_another, open_door

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

MODEL = "chat/gemini-3.5-flash-lite"
TIME = ("get_current_time", {"timezone": "Europe/Zurich"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_door(module_platform: Platform, shared_chat: ChatServer) -> Door:
    """A door to a platform whose agents a scripted model plays."""
    return await open_another(module_platform)


@pytest_asyncio.fixture(loop_scope="module")
async def door(shared_door: Door) -> Door:
    """The door for a tenant of the test's own, which has an agent `helper`."""
    door = await shared_door.for_new_tenant()
    await door.platform.put_agent("helper", model=MODEL, adapt_steps=False)
    return door


@pytest.fixture
def chat(shared_chat: ChatServer) -> ChatServer:
    """The model, which has not been asked yet."""
    shared_chat.calls.clear()
    return shared_chat


async def run(client: Client, text: str = "go", **more: Any) -> Any:
    return await client.call_tool("run_agent", {"agent": "helper", "input": text, **more})


@pytest.mark.asyncio(loop_scope="function")
async def test_an_agent_answers_with_its_cost_and_its_job(platform: Platform):
    where = endpoints(await platform.simulate(rounds(Scripted(text="first"))))
    door = await open_door(platform, "executor", router=RouterSettings(**where), executor=ExecutorSettings(**where))
    await platform.put_agent("helper", model=CLAUDE)

    async with door.client() as client:
        await client.list_tools()
        answered = await run(client, session_id="s-1")

    content = answered.structured_content
    job = await platform.wait_for(content["job_id"])
    assert (content["status"], content["answer"], content["agent"]) == ("completed", "first", "helper")
    assert (content["session_id"], content["trace"]) == ("s-1", f"job://{job.job_id}/trace")
    assert Decimal(content["cost_usd"]) == job.cost_usd > 0
    assert (answered.content[0].text, answered.is_error) == ("first", False)


async def test_an_agent_kept_from_mcp_is_neither_listed_nor_run(door: Door, chat: ChatServer):
    chat.script = turns(Say(text="done"))
    await door.platform.put_agent("secretive", model=MODEL, over_mcp=False)

    async with door.client() as client:
        tools = (await client.list_tools()).tools
        refused = await client.call_tool("run_agent", {"agent": "secretive", "input": "go"})
        answered = await run(client)

    offered = next(tool for tool in tools if tool.name == "run_agent")
    assert "helper" in offered.input_schema["properties"]["agent"]["enum"]
    assert "secretive" not in str(offered.model_dump())
    assert refused.is_error and "secretive" in refused.content[0].text
    assert (answered.is_error, answered.content[0].text) == (False, "done")
    assert len(chat.calls) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_progress_is_told_to_a_client_that_asks(door: Door, chat: ChatServer, mode: str):
    chat.script = turns(Say(tools=(TIME,)), Say(text="noon"))
    told: list[tuple[float, str | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with door.client(mode=mode) as client:
        asked = {"agent": "helper", "input": "what time is it?"}
        answer = await client.call_tool("run_agent", asked, progress_callback=tell)

    assert answer.content[0].text == "noon"
    assert [progress for progress, _ in told] == list(range(1, len(told) + 1))
    messages = [message for _, message in told]
    assert messages[0] == "Reading the task"
    assert {"Thinking about the next step (step 1 of 5)", "Writing the answer (step 2 of 5)"} <= set(messages)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_cancels_cancels_its_job(door: Door, chat: ChatServer, mode: str):
    never = asyncio.Event()
    chat.script = lambda _: Say(text="one two", hold=never)

    async with door.client(mode=mode) as client:
        running = asyncio.create_task(run(client))
        await until(lambda: bool(chat.calls), why="the model was asked")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        job = await door.platform.wait_for(job_of(chat))

    assert (job.status, job.reason) == (Status.CANCELLED, None)


async def test_a_job_that_takes_longer_is_waited_for_again(door: Door, chat: ChatServer):
    go_on = asyncio.Event()
    chat.script = lambda _: Say(text="one two", hold=go_on)

    async with door.another(mcp_wait_max_s=0.2) as hasty, hasty.client() as client:
        running = await run(client)
        job_id = running.structured_content["job_id"]
        await until(lambda: bool(chat.calls), why="the model was asked")
        still = await client.call_tool("wait_for_job", {"job_id": job_id})
        go_on.set()
        await door.platform.wait_for(job_id)
        ended = await client.call_tool("wait_for_job", {"job_id": job_id})

    assert running.structured_content["status"] in {"queued", "running"}
    assert [one.structured_content["status"] for one in (still, ended)] == ["running", "completed"]
    assert "call wait_for_job" in running.content[0].text
    assert ended.content[0].text == "one two"


@pytest.mark.asyncio(loop_scope="function")
async def test_a_stopping_gateway_lets_the_job_go_on(platform: Platform):
    go_on = asyncio.Event()
    async with ChatServer(lambda _: Say(text="one two", hold=go_on)) as chat:
        door = await open_door(platform, "executor", executor=chatting(chat))
        await platform.put_agent("helper", model=MODEL, adapt_steps=False)
        async with door.client() as client:
            # The client reads a tool's output schema before it returns a result; afterwards the gateway is gone.
            await client.list_tools()
            running = asyncio.create_task(run(client))
            await until(lambda: bool(chat.calls), why="the model was asked")
            try:
                await platform.stop("gateway", 5)
                answer = await running
            finally:
                go_on.set()
        job = await platform.wait_for(job_of(chat))

    assert answer.structured_content["status"] == "running"
    assert job.status is Status.COMPLETED


@pytest.mark.asyncio(loop_scope="function")
async def test_a_job_that_waits_for_a_person_says_so(platform: Platform, effects: EffectsServer):
    await effects.start()
    script = turns(Say(tools=(("effects__pay_once", {"amount": 1}),)), Say(text="paid"))
    async with ChatServer(script) as chat:
        registry = with_tools(effects.settings(ask="always"))
        door = await open_door(platform, "executor", executor=chatting(chat), registry=registry)
        await until_listed(platform, "effects__pay_once")
        await platform.put_agent("helper", model=MODEL)
        async with door.client() as client:
            waiting = await run(client)
            content = waiting.structured_content
            [asked] = (await platform.wait_until_parked(content["job_id"])).tools.pending
            await platform.decide(content["job_id"], asked.approval_id)
            await platform.wait_for(content["job_id"])
            ended = await client.call_tool("wait_for_job", {"job_id": content["job_id"]})

    assert (content["status"], content["waiting_for"], waiting.is_error) == ("parked", "approval", False)
    assert "waits for a person" in waiting.content[0].text
    assert ended.content[0].text == "paid"


async def test_a_failed_job_is_an_error_with_its_reason(door: Door, chat: ChatServer):
    chat.script = lambda _: Say(status=401)

    async with door.client() as client:
        failed = await run(client)

    assert (failed.is_error, failed.structured_content["status"]) == (True, "failed")
    assert failed.structured_content["reason"] in failed.content[0].text


async def test_the_same_key_again_is_the_same_job(door: Door, chat: ChatServer):
    chat.script = lambda _: Say(text="done")

    async with door.client() as client:
        arguments = {"agent": "helper", "input": "go"}
        first = await client.call_tool("run_agent", arguments, meta={"wayline/key": "k"})
        again = await client.call_tool("run_agent", arguments, meta={"wayline/key": "k"})
        with pytest.raises(MCPError) as refused:
            await client.call_tool("run_agent", {**arguments, "input": "no"}, meta={"wayline/key": "k"})

    assert first.structured_content == again.structured_content
    assert len(chat.calls) == 1
    assert refused.value.error.data["code"] == "key_reused"


@pytest.mark.asyncio(loop_scope="function")
async def test_what_cannot_run_is_refused_before_it_is_on_the_bus(platform: Platform):
    door = await open_door(platform)

    async with door.client() as client:
        unknown = await client.call_tool("run_agent", {"agent": "nobody", "input": "go"})
        incomplete = await client.call_tool("run_agent", {"agent": "assistant"})
        nowhere = await client.call_tool("wait_for_job", {"job_id": "none"})
    async with door.client(await door.key("read")) as reader:
        forbidden = await reader.call_tool("run_agent", {"agent": "assistant", "input": "go"})

    refused = [unknown, incomplete, nowhere, forbidden]
    assert [one.is_error for one in refused] == [True] * 4
    codes = [one.meta["wayline/error"] for one in refused]
    assert codes == ["unknown_agent", "invalid_arguments", "not_found", "forbidden"]
    assert "input: Field required" in incomplete.content[0].text
    assert await platform.count("SUBMIT") == 0


def job_of(chat: ChatServer) -> str:
    """Return the job for which the model was asked first."""
    return chat.calls[0][0].split("/")[1]
