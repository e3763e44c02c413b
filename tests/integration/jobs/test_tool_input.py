"""A tool whose server asks a person for input: the job parks, and the answer goes to the server with the next call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer

from ..older_server import Ask, OlderServer
from .conftest import chatting, until_listed, with_tools
from .stage import Stage, open_stage
from .test_approvals import answers, until_dead_letter, waiting
from .test_code import executor, program
from .test_code import start as start_coder

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SEND = "effects__send_once"


def sends() -> Any:
    return turns(Say(tools=((SEND, {"amount": 5}),)), Say(text="all done"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(module_platform, tmp_path_factory.mktemp("effects"), asking=True) as stage:
        yield stage


async def start(platform: Platform, effects: EffectsServer, chat: ChatServer, **executor: Any) -> None:
    effects.asking = True
    await effects.start()
    settings = chatting(chat, **executor)
    tools = with_tools(effects.settings(), probe_every_s=0.2)
    await platform.start("router", "executor", "tool_registry", executor=settings, tool_registry=tools)
    await until_listed(platform, SEND)


@pytest.mark.asyncio(loop_scope="function")
async def test_the_answer_goes_to_the_server_and_the_call_completes(platform, effects):
    async with ChatServer(sends()) as chat:
        await start(platform, effects, chat)
        await platform.submit("j1", model="chat/m")
        [asked] = await waiting(platform)
        job = await platform.job("j1")
        [shown] = job.life.waiting.approvals
        assert shown.reason == job.life.waiting.question == "From which account are 5 sent?"
        assert shown.input_schema["properties"]["account"]["minLength"] == 4
        assert (effects.calls(), asked.arguments) == ([], {"amount": 5})
        await platform.stop("executor")
        await platform.start("executor", executor=chatting(chat))

        await platform.decide("j1", asked.approval_id, arguments={"account": "DE12"}, by="ann")

        assert (await platform.wait_for("j1")).answer == "all done"
        assert await answers(chat) == ["send_once done: 5 from DE12"]
    assert effects.calls() == [("send_once", "default/j1/1/1/2")]
    [decided] = await platform.events_of("j1", e.ApprovalDecided)
    assert (decided.answer, decided.arguments, decided.by) == ({"account": "DE12"}, None, "ann")


async def test_an_answer_that_the_schema_refuses_decides_nothing(stage: Stage):
    platform = await stage.play(sends())
    await platform.submit("j1", model="chat/m")
    [asked] = await waiting(platform)

    await platform.decide("j1", asked.approval_id, arguments={"account": "DE"})
    await until_dead_letter(platform, "invalid_arguments", "account")
    assert [one.approval_id for one in await waiting(platform)] == [asked.approval_id]
    await platform.decide("j1", asked.approval_id, arguments={"account": "DE12"})

    assert (await platform.wait_for("j1")).answer == "all done"
    assert stage.effects.count("send_once") == 1


@pytest.mark.asyncio(loop_scope="function")
async def test_an_answer_without_arguments_is_refused_over_the_bus(platform, effects):
    async with ChatServer(sends()) as chat:
        await start(platform, effects, chat)
        await platform.submit("j1", model="chat/m")
        [asked] = await waiting(platform)
        answer = await platform.client.subscribe("replies.default.approver")

        await platform.client.jetstream().publish(
            "approvals.default.j1",
            orjson.dumps({"approval_id": asked.approval_id, "decision": "approve"}),
            headers={"Wayline-Reply-To": "replies.default.approver"},
        )

        refused = await answer.next_msg(timeout=30)
        assert refused.headers is not None and refused.headers["Wayline-Error"] == "invalid_arguments"
        assert "account" in orjson.loads(refused.data)["detail"]
        await until_dead_letter(platform, "invalid_arguments", "account")
        assert [one.approval_id for one in await waiting(platform)] == [asked.approval_id]


async def test_a_question_that_was_declined_is_told_to_the_model(stage: Stage):
    platform = await stage.play(sends())
    await platform.submit("j1", model="chat/m")
    [asked] = await waiting(platform)

    await platform.decide("j1", asked.approval_id, "deny", reason="no account is free")

    assert (await platform.wait_for("j1")).answer == "all done"
    assert await answers(stage.chat) == [
        "the tool asked for input (From which account are 5 sent?) and a person declined to answer, so it was not "
        "done: no account is free"
    ]
    assert stage.effects.calls() == []


@pytest.mark.asyncio(loop_scope="function")
async def test_a_question_that_nobody_answers_in_time_is_told(platform, effects):
    async with ChatServer(sends()) as chat:
        await start(platform, effects, chat, decision_ttl_s=1.0)
        await platform.submit("j1", model="chat/m")

        assert (await platform.wait_for("j1")).answer == "all done"
        [answer] = await answers(chat)
        assert answer.endswith("and nobody answered in time, so it was not done")
    assert effects.calls() == []


@pytest.mark.asyncio(loop_scope="function")
async def test_a_cut_call_with_an_answer_is_unknown_and_not_repeated(platform, effects):
    async with ChatServer(sends()) as chat:
        effects.delay_ms = 60_000
        await start(platform, effects, chat)
        await platform.submit("j1", model="chat/m")
        [asked] = await waiting(platform)
        await platform.decide("j1", asked.approval_id, arguments={"account": "DE12"})
        await until(lambda: effects.has_begun("send_once", "default/j1/1/1/2"), why="the call reached it")
        effects.kill()

        job = await platform.wait_until_parked("j1")
        assert job.life.waiting is not None and job.life.waiting.why == "needs_decision"
        await platform.signal("j1", type="answer", decision_id=job.life.waiting.wait_id, outcome="succeeded")

        assert (await platform.wait_for("j1")).status == "completed"
    assert [event.key for event in await platform.events_of("j1", e.ToolUnknown)] == ["default/j1/1/1/2"]


async def test_a_job_cancelled_while_a_question_waits_ends(stage: Stage):
    platform = await stage.play(sends())
    await platform.submit("j1", model="chat/m")
    await waiting(platform)

    await platform.signal("j1", type="cancel")

    assert (await platform.wait_for("j1")).status == "cancelled"
    [ended] = await platform.events_of("j1", e.ToolCompleted)
    assert ended.error is not None and ended.error.code == "cancelled"
    assert stage.effects.calls() == []


@pytest.mark.asyncio(loop_scope="function")
async def test_a_program_waits_for_the_answer_too(platform, effects):
    effects.asking = True
    async with ChatServer(turns(program("await effects__send_once(amount=5)"), Say(text="done"))) as chat:
        await start_coder(platform, effects, chat)
        await platform.submit("j1", agent="coder", model="chat/m")
        [asked] = await waiting(platform)
        await platform.stop("executor", 0.1)
        await executor(platform, chat)

        await platform.decide("j1", asked.approval_id, arguments={"account": "DE12"})

        assert (await platform.wait_for("j1")).answer == "done"
    assert chat.calls[1][1]["messages"][-1]["content"] == "send_once done: 5 from DE12"
    assert effects.calls() == [("send_once", "default/j1/1/c1/2")]


async def book(ask: Ask) -> str:
    """Book what two answers of a person say, as a server of an older protocol asks for them: while the call runs."""
    account = await ask("Which account?", {"account": {"type": "string"}})
    if account["action"] != "accept":
        return "nothing was booked"
    day = await ask("Which day?", {"day": {"type": "string"}})
    return f"booked from {account['content']['account']} on {day.get('content', {}).get('day', 'no day')}"


@asynccontextmanager
async def older(platform: Platform, chat: ChatServer) -> AsyncIterator[OlderServer]:
    async with OlderServer(book).serving() as server:
        tools = with_tools({"name": "old", "url": server.url, "effects": {"act": "once"}}, probe_every_s=0.2)
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat), tool_registry=tools)
        await until_listed(platform, "old__act")
        yield server


def books() -> Any:
    return turns(Say(tools=(("old__act", {}),)), Say(text="all done"))


@pytest.mark.asyncio(loop_scope="function")
async def test_each_question_of_an_older_server_is_asked_of_a_person(platform):
    async with ChatServer(books()) as chat, older(platform, chat) as server:
        await platform.submit("j1", model="chat/m")
        [first] = await waiting(platform)
        [shown] = (await platform.job("j1")).life.waiting.approvals
        assert shown.reason.startswith("Which account? [An older server")
        assert "the tool said: 'nothing was booked'. Your answer calls it again" in shown.reason
        # Nothing is held open meanwhile: every service may go.
        for service in ("executor", "tool_registry", "router"):
            await platform.stop(service)
        tools = with_tools({"name": "old", "url": server.url, "effects": {"act": "once"}}, probe_every_s=0.2)
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat), tool_registry=tools)
        await until_listed(platform, "old__act")

        await platform.decide("j1", first.approval_id, arguments={"account": "DE12"})

        async def asked_again() -> bool:
            return [one.approval_id for one in await waiting(platform)] not in ([], [first.approval_id])

        await until(asked_again, why="the second question is put to a person")
        [second] = await waiting(platform)
        await platform.decide("j1", second.approval_id, arguments={"day": "Monday"})

        assert (await platform.wait_for("j1")).answer == "all done"
        assert await answers(chat) == ["booked from DE12 on Monday"]
    assert server.calls == 3


@pytest.mark.asyncio(loop_scope="function")
async def test_the_model_reads_how_an_unanswered_older_server_ended(platform):
    async with ChatServer(books()) as chat, older(platform, chat) as server:
        await platform.submit("j1", model="chat/m")
        [asked] = await waiting(platform)

        await platform.decide("j1", asked.approval_id, "deny", reason="no account is free")

        assert (await platform.wait_for("j1")).answer == "all done"
        assert await answers(chat) == [
            "the tool asked for input (Which account?) and a person declined to answer: no account is free; it ended "
            "without an answer, and said: 'nothing was booked'"
        ]
    assert server.calls == 1
