"""A tool call that needs a person's approval is made as it was approved, once, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from wayline.contracts import events as e
from wayline.contracts.framed_words import FRAME
from wayline.contracts.tools import ListTools, ToolList
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.simulator.chat_server import ChatServer, Say, Script, turns
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer
from wayline.tracing.settings import Settings as TracingSettings

from .conftest import chatting, until_listed, with_tools
from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PAY, LOOK = "effects__pay_once", "effects__look_read"
STRANGE_PAY, STRANGE_LOOK = "strange__pay_once", "strange__look_read"


def pays(*amounts: int) -> Any:
    """A model that pays these amounts beside each other, then answers."""
    return turns(Say(tools=tuple((PAY, {"amount": amount}) for amount in amounts)), Say(text="all done"))


async def start(
    platform: Platform, effects: EffectsServer, chat: ChatServer, *, agent: dict[str, Any] | None = None, **server: Any
) -> None:
    """Start all that a job needs, with an agent `careful` that asks before each write."""
    await effects.start()
    tools = with_tools(effects.settings(**server), probe_every_s=0.2)
    await platform.start("router", "executor", "tool_registry", executor=chatting(chat), tool_registry=tools)
    await platform.put_agent("careful", **{"ask": "writes", **(agent or {})})


@dataclass
class Stage:
    """A platform whose tools have effects, and a model that says what the test gives it."""

    platform: Platform
    effects: EffectsServer
    chat: ChatServer

    async def play(self, plan: Script, **agent: Any) -> Platform:
        """Have the model follow a plan, for a tenant of the test's own with an agent that asks before each write."""
        self.chat.script = plan
        self.chat.calls.clear()
        self.effects.forget()
        platform = await self.platform.new_tenant()
        await platform.put_agent("careful", **{"ask": "writes", **agent})
        return platform


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """One stage for all tests that stop nothing; the words of its server `strange` are a stranger's."""
    effects = EffectsServer(tmp_path_factory.mktemp("effects") / "effects.txt")
    async with ChatServer(pays()) as chat:
        await effects.start()
        strange = effects.settings(untrusted=True) | {"name": "strange"}
        tools = with_tools(effects.settings(), strange)
        await module_platform.start("router", "executor", "tool_registry", executor=chatting(chat), tool_registry=tools)
        for tool in (PAY, STRANGE_PAY):
            await until_listed(module_platform, tool)
        yield Stage(module_platform, effects, chat)
        assert await differences(module_platform.bus) == []
    effects.kill()


async def waiting(platform: Platform, job_id: str = "j1") -> list[e.ApprovalRequested]:
    """Return the approvals that a parked job waits for."""
    return list((await platform.wait_until_parked(job_id)).tools.pending)


async def answers(chat: ChatServer) -> list[str]:
    """Return the tool results that the model was shown last, in the order of its calls."""
    return [message["content"] for message in chat.calls[-1][1]["messages"] if message["role"] == "tool"]


async def test_an_approved_call_is_made_and_a_denied_one_is_told(stage: Stage):
    platform = await stage.play(pays(1, 2))
    await platform.submit("j1", agent="careful", model="chat/m")
    first, second = await waiting(platform)
    job = await platform.job("j1")
    assert job.life.waiting.why == "approval"
    assert [one.approval_id for one in job.life.waiting.approvals] == [first.approval_id, second.approval_id]
    assert stage.effects.amounts() == []

    await platform.decide("j1", second.approval_id, "deny", reason="two is too much", by="ann")
    await platform.decide("j1", first.approval_id, by="ann")

    assert (await platform.wait_for("j1")).answer == "all done"
    assert stage.effects.amounts() == [1]
    assert await answers(stage.chat) == [
        "pay_once done",
        "a person denied this call, so it was not made: two is too much",
    ]
    decided = await platform.events_of("j1", e.ApprovalDecided)
    assert {(one.decision, one.by) for one in decided} == {("approved", "ann"), ("denied", "ann")}


async def test_the_decision_is_in_the_log_before_the_call(stage: Stage):
    platform = await stage.play(pays(1))
    await platform.submit("j1", agent="careful", model="chat/m")
    [asked] = await waiting(platform)

    await platform.decide("j1", asked.approval_id)

    await platform.wait_for("j1")
    types = [event.type for event in await platform.events("j1")]
    tail = types[types.index("approval.requested") :]
    assert tail[:7] == [
        "approval.requested",
        "job.parked",
        "job.claimed",
        "job.resumed",
        "approval.decided",
        "tool.requested",
        "tool.completed",
    ]


async def test_calls_that_need_no_approval_run_while_others_wait(stage: Stage):
    plan = turns(Say(tools=((PAY, {"amount": 1}), (LOOK, {}))), Say(text="all done"))
    platform = await stage.play(plan)
    await platform.submit("j1", agent="careful", model="chat/m")

    [asked] = await waiting(platform)

    assert asked.tool == PAY
    assert [tool for tool, _ in stage.effects.calls()] == ["look_read"]


async def test_an_approval_is_for_its_own_call_only(stage: Stage):
    """The answers are swapped: each decision names an id, so neither can be taken for the other."""
    platform = await stage.play(pays(1, 1_000))
    await platform.submit("j1", agent="careful", model="chat/m")
    small, large = await waiting(platform)

    await platform.decide("j1", large.approval_id, "deny")
    await platform.decide("j1", small.approval_id, "approve")
    # What was decided stays decided.
    await platform.decide("j1", large.approval_id, "approve")
    await platform.decide("j1", small.approval_id, "deny")

    await platform.wait_for("j1")
    assert stage.effects.amounts() == [1]


async def test_edited_arguments_are_what_runs(stage: Stage):
    platform = await stage.play(pays(1_000))
    await platform.submit("j1", agent="careful", model="chat/m")
    [asked] = await waiting(platform)

    await platform.decide("j1", asked.approval_id, arguments={"amount": 7})

    await platform.wait_for("j1")
    [decided] = await platform.events_of("j1", e.ApprovalDecided)
    [requested] = await platform.events_of("j1", e.ToolRequested)
    assert decided.arguments == requested.arguments == {"amount": 7}
    assert decided.hash != asked.hash
    assert stage.effects.amounts() == [7]


@pytest.mark.asyncio(loop_scope="function")
async def test_arguments_that_the_tool_does_not_take_decide_nothing(platform, effects):
    async with ChatServer(pays(5)) as chat:
        await start(platform, effects, chat)
        await platform.submit("j1", agent="careful", model="chat/m")
        [asked] = await waiting(platform)

        answer = await platform.client.subscribe("replies.default.approver")
        await platform.client.jetstream().publish(
            "approvals.default.j1",
            orjson.dumps({"approval_id": asked.approval_id, "decision": "approve", "arguments": {"amount": "a lot"}}),
            headers={"Wayline-Reply-To": "replies.default.approver"},
        )
        refused = await answer.next_msg(timeout=30)
        assert refused.headers is not None and refused.headers["Wayline-Error"] == "invalid_arguments"
        assert "amount" in orjson.loads(refused.data)["detail"]
        await until_dead_letter(platform, "invalid_arguments", "amount")
        assert [one.approval_id for one in await waiting(platform)] == [asked.approval_id]
        await platform.decide("j1", asked.approval_id)

        await platform.wait_for("j1")
        assert effects.amounts() == [5]


async def until_dead_letter(platform: Platform, code: str, about: str) -> None:
    """Wait until a decision was put aside with this code and a reason that names something."""

    async def put_aside() -> bool:
        letters = await platform.dead_letters()
        return any(one["Wayline-Dead-Code"] == code and about in one["Wayline-Dead-Reason"] for one in letters)

    await until(put_aside, why="the decision is a dead letter")


async def test_an_approval_of_one_step_is_none_of_the_next(stage: Stage):
    """Replayed: the same call, asked for again in the next step, waits for an approval of its own."""
    pay = Say(tools=((PAY, {"amount": 1}),))
    platform = await stage.play(turns(pay, pay, Say(text="all done")))
    await platform.submit("j1", agent="careful", model="chat/m")
    [first] = await waiting(platform)
    await platform.decide("j1", first.approval_id)
    await platform.wait_until("j1", lambda job: job.model.step == 2 and job.tools.pending, "the second asks")
    [second] = await waiting(platform)
    assert (second.hash, second.approval_id != first.approval_id) == (first.hash, True)

    await platform.decide("j1", first.approval_id)
    await platform.wait_until("j1", lambda job: job.life.epoch > 2, "it was woken")
    assert [one.approval_id for one in await waiting(platform)] == [second.approval_id]
    await platform.decide("j1", second.approval_id, "deny")

    await platform.wait_for("j1")
    assert stage.effects.amounts() == [1]


async def test_two_approvers_at_once_are_one_decision(stage: Stage):
    platform = await stage.play(pays(1))
    await platform.submit("j1", agent="careful", model="chat/m")
    [asked] = await waiting(platform)

    sequences = await asyncio.gather(
        *(platform.decide("j1", asked.approval_id, one, by=one) for one in ("approve", "deny", "approve"))
    )

    await platform.wait_for("j1")
    [decided] = await platform.events_of("j1", e.ApprovalDecided)
    first = min(range(3), key=lambda n: sequences[n])
    assert decided.by == ("approve", "deny", "approve")[first]
    assert stage.effects.amounts() == ([] if first == 1 else [1])


@pytest.mark.asyncio(loop_scope="function")
async def test_a_tool_that_changed_while_waiting_is_asked_for_again(platform, effects):
    async with ChatServer(pays(1)) as chat:
        await start(platform, effects, chat)
        await platform.submit("j1", agent="careful", model="chat/m")
        [first] = await waiting(platform)
        effects.kill()
        effects.described_as = "Pay an amount, twice."
        await effects.start()
        await relisted(platform, "Pay an amount, twice.")

        await platform.decide("j1", first.approval_id)

        await platform.wait_until(
            "j1", lambda job: len(job.tools.approvals) == 2 and job.tools.pending, "it asks again"
        )
        [second] = await waiting(platform)
        assert (second.definition != first.definition, effects.amounts()) == (True, [])
        # The old one is spent.
        await platform.decide("j1", first.approval_id)
        await platform.decide("j1", second.approval_id)
        assert (await platform.wait_for("j1")).status == "completed"
        assert effects.amounts() == [1]
        keys = [event.key for event in await platform.events_of("j1", e.ToolRequested)]
        assert keys == ["default/j1/1/1", "default/j1/1/1/2"]


async def relisted(platform: Platform, description: str) -> None:
    """Wait until the registry knows a tool of the effects server by this description."""

    async def known() -> bool:
        listed = await platform.bus.ask(ListTools(tenant="default", patterns=(PAY,)), ToolList)
        return any(tool.description == description for tool in listed.tools)

    await until(known, why="the registry has seen the change")


@pytest.mark.asyncio(loop_scope="function")
async def test_an_approval_that_nobody_gives_in_time_is_a_denial(platform, effects):
    async with ChatServer(pays(1)) as chat:
        await effects.start()
        settings = ExecutorSettings(chat_base_url=chat.url, tool_wait_s=2.0, decision_ttl_s=1.0)
        tools = with_tools(effects.settings())
        await platform.start("router", "executor", "tool_registry", executor=settings, tool_registry=tools)
        await platform.put_agent("careful", ask="always")

        await platform.submit("j1", agent="careful", model="chat/m")

        assert (await platform.wait_for("j1")).status == "completed"
        [asked] = await platform.events_of("j1", e.ApprovalRequested)
        [decided] = await platform.events_of("j1", e.ApprovalDecided)
        assert (decided.approval_id, decided.decision) == (asked.approval_id, "expired")
        assert await answers(chat) == ["nobody approved this call in time, so it was not made"]
        assert effects.amounts() == []


@pytest.mark.asyncio(loop_scope="function")
async def test_who_may_only_signal_approves_nothing(platform, effects):
    """A decision on the subject of signals is none, whatever its headers claim."""
    async with ChatServer(pays(1)) as chat:
        await start(platform, effects, chat)
        await platform.submit("j1", agent="careful", model="chat/m")
        [asked] = await waiting(platform)
        decision = {"approval_id": asked.approval_id, "decision": "approve"}

        await platform.signal("j1", type="approval", **decision)
        await platform.client.jetstream().publish(
            "signals.default.j1",
            orjson.dumps(decision),
            headers={"Nats-Subject": "approvals.default.j1", "Wayline-Schema": "DecideApproval-1"},
        )
        await platform.signal("j1", type="cancel")

        assert (await platform.wait_for("j1")).status == "cancelled"
        assert effects.amounts() == []
        assert await platform.events_of("j1", e.ApprovalDecided) == []


@pytest.mark.asyncio(loop_scope="function")
async def test_a_cancel_beside_an_approval_wins(platform, effects):
    async with ChatServer(pays(1)) as chat:
        await start(platform, effects, chat)
        await platform.submit("j1", agent="careful", model="chat/m")
        [asked] = await waiting(platform)
        await platform.stop("executor")

        await platform.decide("j1", asked.approval_id)
        await platform.signal("j1", type="cancel", reason="never mind")
        await platform.start("executor", executor=chatting(chat))

        assert (await platform.wait_for("j1")).status == "cancelled"
        assert effects.amounts() == []
        await platform.wait_until_empty("RUN")


async def test_an_untrusted_result_makes_the_next_effect_ask(stage: Stage):
    plan = turns(
        Say(tools=((STRANGE_LOOK, {}),)),
        Say(tools=((STRANGE_LOOK, {}), (STRANGE_PAY, {"amount": 1}))),
        Say(text="all done"),
    )
    platform = await stage.play(plan, ask="never")
    await platform.submit("j1", agent="careful", model="chat/m")

    [asked] = await waiting(platform)

    assert (asked.tool, asked.why) == (STRANGE_PAY, "tainted")
    assert STRANGE_LOOK in asked.reason
    assert stage.effects.count("look_read") == 2
    assert stage.effects.amounts() == []
    await platform.decide("j1", asked.approval_id)
    await platform.wait_for("j1")
    assert stage.effects.amounts() == [1]


async def test_a_turn_after_one_with_untrusted_words_begins_tainted(stage: Stage):
    plan = turns(
        Say(tools=((STRANGE_LOOK, {}),)),
        Say(text="seen"),
        Say(text="well"),
        Say(tools=((STRANGE_PAY, {"amount": 1}),)),
        Say(text="all done"),
    )
    platform = await stage.play(plan, ask="never")
    for job_id in ("j1", "j2"):
        turn = {"agent": "careful", "input": "look", "job_id": job_id, "session_id": "s"}
        await platform.publish({**turn, "options": {"model": "chat/m"}})
        assert (await platform.wait_for(job_id)).status == "completed"
    await platform.publish({**turn, "job_id": "j3", "input": "pay", "options": {"model": "chat/m"}})

    [asked] = await waiting(platform, "j3")

    assert (asked.tool, asked.why) == (STRANGE_PAY, "tainted")
    assert STRANGE_LOOK in asked.reason
    await platform.decide("j3", asked.approval_id)
    await platform.wait_for("j3")
    assert stage.effects.amounts() == [1]


async def test_an_agent_may_turn_off_asking_when_tainted(stage: Stage):
    plan = turns(Say(tools=((STRANGE_LOOK, {}),)), Say(tools=((STRANGE_PAY, {"amount": 1}),)), Say(text="all done"))
    platform = await stage.play(plan, ask="never", ask_when_tainted=False)
    await platform.submit("j1", agent="careful", model="chat/m")

    assert (await platform.wait_for("j1")).status == "completed"
    assert stage.effects.amounts() == [1]


async def test_an_untrusted_result_is_framed_as_data(stage: Stage):
    plan = turns(
        Say(tools=((STRANGE_LOOK, {}),)), Say(tools=((STRANGE_LOOK, {"query": "again"}),)), Say(text="all done")
    )
    platform = await stage.play(plan, ask="never")
    await platform.submit("j1", agent="careful", model="chat/m")
    await platform.wait_for("j1")

    first, *_ = results = await answers(stage.chat)
    assert all(one.startswith(FRAME.format(tool=STRANGE_LOOK)) for one in results)
    assert [m["content"] for m in stage.chat.calls[1][1]["messages"] if m["role"] == "tool"] == [first]


async def test_a_tainted_job_asks_before_it_carries_data_out(stage: Stage):
    plan = turns(
        Say(tools=((STRANGE_LOOK, {}),)), Say(tools=((STRANGE_LOOK, {"query": "secret"}),)), Say(text="all done")
    )
    platform = await stage.play(plan, ask="never", ask_egress=True)
    await platform.submit("j1", agent="careful", model="chat/m")

    [asked] = await waiting(platform)

    assert (asked.tool, asked.why) == (STRANGE_LOOK, "tainted")
    assert "can carry data out" in asked.reason
    assert stage.effects.count("look_read") == 1
    await platform.decide("j1", asked.approval_id)
    assert (await platform.wait_for("j1")).status == "completed"
    assert stage.effects.count("look_read") == 2


@pytest.mark.asyncio(loop_scope="function")
async def test_no_agent_can_lift_what_a_tool_asks_for(platform, effects):
    async with ChatServer(pays(1)) as chat:
        await start(platform, effects, chat, agent={"ask": "never", "ask_tools": {"*": "never"}}, ask="writes")
        await platform.submit("j1", agent="careful", model="chat/m")

        [asked] = await waiting(platform)

        assert asked.why == "tool"
        assert effects.amounts() == []


@pytest.mark.asyncio(loop_scope="function")
async def test_doing_an_approved_call_again_needs_another_approval(platform, effects):
    """An approval holds for one call; a person who may only answer cannot have it made twice."""
    async with ChatServer(pays(1)) as chat:
        effects.delay_ms = 60_000
        await start(platform, effects, chat)
        await platform.submit("j1", agent="careful", model="chat/m")
        [first] = await waiting(platform)
        await platform.decide("j1", first.approval_id)
        await until(lambda: effects.has_begun("pay_once", "default/j1/1/1"), why="the call reached it")
        effects.kill()
        job = await platform.wait_until("j1", has_question, "nobody knows what became of it")
        effects.delay_ms = 0
        await effects.start()

        await platform.signal("j1", type="answer", decision_id=job.life.waiting.wait_id, outcome="retry")

        await platform.wait_until("j1", lambda job: bool(job.tools.pending), "it asks again")
        [second] = await waiting(platform)
        assert effects.amounts() == []
        await platform.decide("j1", second.approval_id)
        await platform.wait_for("j1")
        assert effects.amounts() == [1]


def has_question(job) -> bool:
    return job.life.waiting is not None and job.life.waiting.why == "needs_decision"


@pytest.mark.asyncio(loop_scope="function")
async def test_a_tool_that_came_after_the_listing_is_asked_for(platform, effects):
    """The job was never told of it, so only the registry knows that its agent wants this call approved."""
    hold = asyncio.Event()
    plan = turns(Say(text="I pay.", tools=((PAY, {"amount": 1}),), hold=hold), Say(text="all done"))
    async with ChatServer(plan) as chat:
        await effects.start()
        effects.kill()
        tools = with_tools(effects.settings(), list_within_s=0.1)
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat), tool_registry=tools)
        await platform.put_agent("careful", ask="writes")
        await platform.submit("j1", agent="careful", model="chat/m")
        await until(lambda: chat.calls, why="the model is asked")
        await effects.start()
        await relisted(platform, "Pay an amount; paying twice is paying twice.")

        hold.set()

        [asked] = await waiting(platform)
        assert (asked.why, effects.amounts()) == ("agent", [])
        await platform.decide("j1", asked.approval_id)
        await platform.wait_for("j1")
        assert effects.amounts() == [1]


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.mark.asyncio(loop_scope="function")
async def test_waiting_and_decided_approvals_are_counted(platform, effects):
    approved = sample("wayline_approvals_decided_total", outcome="approved")
    timed = sample("wayline_approval_seconds_count", outcome="approved")
    async with ChatServer(pays(1)) as chat:
        await start(platform, effects, chat)
        await platform.start("tracing", tracing=TracingSettings(http_port=0, gauges_every_s=0.1))  # pyright: ignore[reportCallIssue]
        await platform.submit("j1", agent="careful", model="chat/m")
        [asked] = await waiting(platform)
        await until(lambda: sample("wayline_approvals_waiting") == 1, why="one approval waits")

        await platform.decide("j1", asked.approval_id)

        await platform.wait_for("j1")
        await until(lambda: sample("wayline_approvals_waiting") == 0, why="none waits any more")
        assert sample("wayline_approvals_decided_total", outcome="approved") == approved + 1
        assert sample("wayline_approval_seconds_count", outcome="approved") == timed + 1
