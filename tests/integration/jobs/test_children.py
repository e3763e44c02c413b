"""An agent has another one do a task: a job of its own, whose end is the call's result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.jobs import Status
from wayline.contracts.tools import RUN_AGENT
from wayline.testkit import Platform

from .ended_jobs import differences
from .families import ChatServer, Family, Model, ask, calls, executor_settings, new_family, put_agents, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chat(module_platform: Platform) -> AsyncIterator[ChatServer]:
    """The model of services for all tests without settings of their own; the executor has one slot."""
    async with ChatServer(Model().say) as chat:
        await module_platform.start("router", "executor", executor=executor_settings(chat, interactive_slots=1))
        yield chat
        assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module")
async def family(module_platform: Platform, chat: ChatServer) -> AsyncIterator[Family]:
    async with new_family(module_platform, chat) as family:
        yield family


async def test_a_child_answers_while_its_parent_holds_no_slot(family: Family):
    """The executor has one slot: the parent has to give it up, or its child would never run."""
    await family.submit("j1", calls(ask("worker", says("42", hold="work"))), says("the worker said 42"))
    await family.model.until_asked("work")
    parent = await family.until_parked("j1")
    assert parent.life.waiting is not None
    assert (parent.life.waiting.why, parent.life.waiting.children) == ("children", (family.child("j1"),))

    family.model.holds["work"].set()

    job = await family.platform.wait_for("j1")
    assert (job.answer, job.status) == ("the worker said 42", Status.COMPLETED)
    shown = family.asked_by("j1")[-1]["messages"][-1]
    assert (shown["role"], shown["content"]) == ("tool", "42")
    types = [event.type for event in await family.platform.events("j1")]
    begin = types.index("tool.requested")
    assert types[begin : begin + 7] == [
        "tool.requested",
        "child.started",
        "job.parked",
        "job.claimed",
        "job.resumed",
        "tool.completed",
        "model.requested",
    ]
    await family.platform.wait_until_empty("RUN")


async def test_a_parent_and_its_child_name_each_other(family: Family):
    await family.submit("j1", calls(ask("worker", says("42"))), says("done"))

    job = await family.platform.wait_for("j1")
    one = await family.platform.wait_for(family.child("j1"))

    assert one.parent is not None
    assert (one.parent.job_id, one.parent.step, one.parent.call, one.parent.depth) == ("j1", 1, "1", 1)
    [named] = job.children
    assert (named.job_id, named.agent, named.status) == (one.job_id, "worker", Status.COMPLETED)
    assert one.trace_id == job.trace_id == ids.trace_id(family.platform.tenant, "j1")


async def test_the_model_is_offered_its_agents_with_their_descriptions(family: Family):
    await family.submit("j1", says("done"))
    await family.submit("j2", says("done"), agent="worker")
    await family.platform.wait_for("j1")
    await family.platform.wait_for("j2")

    [tool] = family.asked_by("j1")[0]["tools"]
    assert tool["function"]["name"] == RUN_AGENT
    assert tool["function"]["parameters"]["properties"]["agent"]["enum"] == ["worker", "boss"]
    assert "- worker: Works." in tool["function"]["description"]
    assert "tools" not in family.asked_by("j2")[0]


@pytest.mark.asyncio(loop_scope="function")
async def test_children_of_one_answer_run_beside_each_other(platform: Platform):
    model = Model()
    async with ChatServer(model.say) as chat:
        await platform.start("router", "executor", executor=executor_settings(chat))
        await put_agents(platform)
        family = Family(platform, chat, model)
        both = calls(ask("worker", says("one", hold="a")), ask("worker", says("two", hold="b")))
        await family.submit("j1", both, says("done"))
        await asyncio.gather(model.until_asked("a"), model.until_asked("b"))

        model.holds["b"].set()
        await platform.wait_for(family.child("j1", call=2))
        model.holds["a"].set()

        await platform.wait_for("j1")
        assert [done.content for done in await family.results("j1")] == ["one", "two"]
        claims = [event for event in await platform.events("j1") if isinstance(event, e.JobClaimed)]
        assert len(claims) == 2, "the parent was woken once, when both had ended"


async def test_a_child_that_fails_is_a_tool_error_with_its_id(family: Family):
    await family.platform.put_agent("strict", tools=(), model="chat/m", output_schema={"type": "object"})
    await put_agents(family.platform, agents=("strict",))
    await family.submit("j1", calls(ask("strict", says("no json"))), says("done"))

    await family.platform.wait_for("j1")

    [done] = await family.results("j1")
    assert done.error is not None and done.child is not None
    assert done.child.status is Status.FAILED
    assert "strict failed (invalid_output)" in done.error.message
    assert family.child("j1") in done.error.message


async def test_a_partial_answer_of_a_child_says_so(family: Family):
    await family.platform.put_agent("brief", tools=(), agents=("worker",), model="chat/m", max_steps=1)
    await put_agents(family.platform, agents=("brief",))
    plan = ask("brief", {"text": "so far", **calls(ask("worker", says("42")))})
    await family.submit("j1", calls(plan), says("done"))

    await family.platform.wait_for("j1")

    [done] = await family.results("j1")
    assert done.status == "success"
    assert "not whole" in done.content and family.child("j1") in done.content


async def test_a_job_too_deep_is_refused_as_a_tool_error(family: Family):
    inner = calls(ask("boss", calls(ask("worker", says("too deep"))), says("third")))
    deep = calls(ask("boss", inner, says("second")))
    await family.submit("j1", calls(ask("boss", deep, says("first"))), says("done"))

    await family.platform.wait_for("j1")

    third = family.child(family.child(family.child("j1")))
    [done] = await family.results(third)
    assert done.error is not None
    assert (done.error.code, done.child) == ("refused", None)
    assert "3 jobs below the first one" in done.error.message
    assert await family.platform.events(family.child(third)) == []


@pytest.mark.asyncio(loop_scope="function")
async def test_more_children_than_a_step_may_have_are_refused(platform: Platform):
    model = Model()
    async with ChatServer(model.say) as chat:
        settings = executor_settings(chat, children_per_step_max=2, children_per_job_max=3)
        await platform.start("router", "executor", executor=settings)
        await put_agents(platform)
        family = Family(platform, chat, model)
        three = calls(*(ask("worker", says(f"{n}")) for n in range(3)))
        more = calls(*(ask("worker", says(f"{n}")) for n in (3, 4)))
        await family.submit("j1", three, more, says("done"))

        await platform.wait_for("j1")

        refused = [done for done in await family.results("j1") if done.error is not None]
        assert [(done.step, done.call) for done in refused] == [(1, "3"), (2, "2")]
        assert "at most 2 agents" in refused[0].error.message  # type: ignore[union-attr]
        assert "started 3 agents already" in refused[1].error.message  # type: ignore[union-attr]


async def test_an_agent_that_is_not_listed_cannot_be_started(family: Family):
    await put_agents(family.platform, agents=("worker", "gone"))
    await family.submit("j1", calls(ask("gone", says("?")), ask("assistant", says("?"))), says("done"))

    await family.platform.wait_for("j1")

    results = await family.results("j1")
    assert [done.error and done.error.code for done in results] == ["invalid_arguments"] * 2
    assert results[0].error is not None and "one of: worker" in results[0].error.message


async def test_a_child_has_at_most_the_time_left_to_its_parent(family: Family):
    await family.submit("j1", calls(ask("worker", says("42"))), says("done"), max_seconds=30)

    await family.platform.wait_for("j1")

    [routed] = await family.platform.events_of(family.child("j1"), e.JobRouted)
    assert 0 < routed.limits.max_seconds < 30


async def test_a_client_cannot_choose_the_id_of_a_child(family: Family):
    await family.submit(family.child("j1"), says("mine"), agent="worker")

    await family.platform.wait_until_empty("SUBMIT")

    assert await family.platform.events(family.child("j1")) == []
