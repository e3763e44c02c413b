"""What ends a job ends the jobs that it started, and what they wait for it waits for, too."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.jobs import Status, TaintSource
from wayline.executor.adapters.children import Children
from wayline.executor.perform import children
from wayline.testkit import Platform
from wayline.testkit.effects_server import EffectsServer

from .conftest import until_listed, with_tools
from .ended_jobs import differences
from .families import ChatServer, Family, Model, ask, calls, executor_settings, new_family, put_agents, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PAY, LOOK = "effects__pay_once", "effects__look_read"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def effects(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EffectsServer]:
    server = EffectsServer(tmp_path_factory.mktemp("effects") / "effects.txt")
    yield await server.start()
    server.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chat(module_platform: Platform, effects: EffectsServer) -> AsyncIterator[ChatServer]:
    """The model of services for all tests that stop none; nobody trusts their tools, and the executor has one slot."""
    async with ChatServer(Model().say) as chat:
        await module_platform.start(
            *("router", "executor", "tool_registry"),
            executor=executor_settings(chat, interactive_slots=1),
            tool_registry=with_tools(effects.settings(untrusted=True)),
        )
        await until_listed(module_platform, PAY)
        yield chat
        assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module")
async def family(module_platform: Platform, chat: ChatServer) -> AsyncIterator[Family]:
    async with new_family(module_platform, chat) as family:
        yield family


@pytest_asyncio.fixture(loop_scope="module")
async def tooled(family: Family, effects: EffectsServer) -> Family:
    """A family whose worker has tools with effects."""
    effects.forget()
    await family.platform.put_agent("worker", model="chat/m", tools=("effects__*",), ask="writes")
    return family


async def test_a_cancel_reaches_a_running_child_first(family: Family):
    await family.submit("j1", calls(ask("worker", says("42", hold="work"))), says("done"))
    await family.model.until_asked("work")
    await family.until_parked("j1")

    await family.platform.signal("j1", type="cancel", reason="enough")

    job = await family.platform.wait_for("j1")
    one = await family.platform.wait_for(family.child("j1"))
    assert (job.status, job.reason) == (Status.CANCELLED, "enough")
    assert (one.status, one.reason) == (Status.CANCELLED, "the job that started it was cancelled")
    assert job.ended_at is not None and one.ended_at is not None and one.ended_at <= job.ended_at
    [done] = await family.results("j1")
    assert done.child is not None and done.child.status is Status.CANCELLED
    await family.platform.wait_until_empty("RUN")


async def test_a_cancel_reaches_a_parked_child_and_the_one_below_it(family: Family):
    plan = calls(ask("boss", calls(ask("worker", says("42", hold="work"))), says("mid")))
    await family.submit("j1", plan, says("done"))
    await family.model.until_asked("work")
    await family.until_parked(family.child("j1"))

    await family.platform.signal("j1", type="cancel")

    for job_id in ("j1", family.child("j1"), family.child(family.child("j1"))):
        assert (await family.platform.wait_for(job_id)).status is Status.CANCELLED
    await family.platform.wait_until_empty("RUN")


@pytest.mark.asyncio(loop_scope="function")
async def test_a_cancelled_child_that_was_never_begun_never_begins(platform: Platform):
    """The router is away when the child should start: whoever comes first to its log decides."""
    model = Model()
    async with ChatServer(model.say) as chat:
        await platform.start("router", "executor", executor=executor_settings(chat))
        await put_agents(platform)
        family = Family(platform, chat, model)
        await family.submit("j1", {**calls(ask("worker", says("42"))), "text": "wait", "hold": "start"})
        await model.until_asked("start")
        await platform.stop("router", 0)
        model.holds["start"].set()
        await platform.wait_until("j1", lambda job: any(c.key for c in job.tools.calls), "it wants to start a child")
        await platform.signal("j1", type="cancel")
        await platform.wait_until("j1", lambda job: job.life.cancel is not None, "it heard the cancel")
        await platform.start("router")

        assert (await platform.wait_for("j1")).status is Status.CANCELLED
        types = [event.type for event in await platform.events(family.child("j1"))]
        assert types == ["job.submitted", "job.cancelled"]


async def test_a_child_that_does_not_stop_is_named_and_left(family: Family, monkeypatch):
    monkeypatch.setattr(children, "STOP_WAIT_S", 1.0)
    await family.submit("j1", calls(ask("worker", says("42", hold="work"))), says("done"))
    await family.model.until_asked("work")
    await family.until_parked("j1")

    async def nothing(*_: object) -> dict[str, object]:
        return {}

    # The child seems not to end, whatever it is told.
    monkeypatch.setattr(Children, "ended", nothing)
    monkeypatch.setattr(Children, "have_ended", nothing)
    await family.platform.signal("j1", type="cancel", reason="enough")

    job = await family.platform.wait_for("j1")
    assert job.status is Status.CANCELLED
    assert job.reason == f"enough; told to stop, and had not ended: {family.child('j1')}"
    [named] = job.children
    assert (named.status, named.cost_usd, job.total_cost_usd) == (None, None, None)


async def test_a_child_at_its_parents_deadline_ends_and_is_reported(family: Family):
    await family.submit("j1", calls(ask("worker", says("42", hold="work"))), says("done"), max_seconds=2)
    await family.model.until_asked("work")

    job = await family.platform.wait_for("j1")
    one = await family.platform.wait_for(family.child("j1"))

    assert (one.status, one.partial) == (Status.COMPLETED, True)
    assert one.reason is not None and one.reason.endswith("s are over")
    # Its own time went on while its child worked.
    assert (job.status, job.partial) == (Status.COMPLETED, True)
    assert job.answer is not None and job.answer.startswith("42\n\n[This answer is not whole")


async def approve(family: Family, job_id: str) -> e.ApprovalRequested:
    """Wait until a job asks for an approval, and give it."""
    asks = await family.platform.wait_until(job_id, lambda job: bool(job.tools.pending), f"{job_id} asks")
    await family.platform.decide(job_id, asks.tools.pending[0].approval_id)
    return asks.tools.pending[0]


async def test_a_parent_waits_on_while_its_child_waits_for_an_approval(tooled: Family, effects: EffectsServer):
    work = ask("worker", calls((PAY, {"amount": 3})), says("paid"))
    await tooled.submit("j1", calls(work), says("done"))
    await tooled.until_parked("j1")

    await approve(tooled, tooled.child("j1"))

    assert (await tooled.platform.wait_for("j1")).answer == "done"
    assert effects.amounts() == [3]
    claims = await tooled.platform.events_of("j1", e.JobClaimed)
    assert len(claims) == 2, "nothing woke the parent but the end of its child"


async def test_what_strangers_said_taints_a_child_and_its_parent(tooled: Family, effects: EffectsServer):
    await tooled.platform.put_agent("worker", model="chat/m", tools=("effects__*",))
    looks = ask("worker", calls((LOOK, {})), says("they say: pay"))
    await tooled.submit("j1", calls(looks), calls(ask("worker", calls((PAY, {"amount": 1})))), says("done"))

    # The second child read nothing itself, and still has to ask before it acts.
    second = tooled.child("j1", step=2)
    asked = await tooled.platform.wait_until(second, lambda job: bool(job.tools.pending), "it asks")
    assert asked.tools.pending[0].why == "tainted"
    assert asked.family.parent is not None and asked.family.parent.tainted_by == LOOK
    first = tooled.child("j1")
    above, below = (await tooled.platform.job("j1")).tools.taint, asked.tools.taint
    assert above == TaintSource(kind="child", name=LOOK, step=1, call="1", job_id=first)
    assert below == TaintSource(kind="parent", name=LOOK, job_id="j1")
    assert effects.amounts() == []
    await tooled.platform.signal("j1", type="cancel")
    assert (await tooled.platform.wait_for(second)).status is Status.CANCELLED


async def test_an_agent_that_asks_before_writes_asks_before_starting(family: Family):
    await put_agents(family.platform, ask="writes")
    await family.submit("j1", calls(ask("worker", says("42"))), says("done"))
    await family.platform.wait_until("j1", lambda job: bool(job.tools.pending), "it asks")
    assert await family.platform.events(family.child("j1")) == []

    asked = await approve(family, "j1")

    assert (asked.tool, asked.why) == ("run_agent", "agent")
    assert (await family.platform.wait_for("j1")).answer == "done"


async def test_a_job_waits_for_a_person_and_a_child(tooled: Family, effects: EffectsServer):
    await put_agents(tooled.platform, tools=("effects__*",), ask="writes", ask_tools={"run_agent": "never"})
    plan = calls(ask("worker", says("42", hold="work")), (PAY, {"amount": 5}))
    await tooled.submit("j1", plan, says("done"))
    await tooled.model.until_asked("work")
    waiting = (await tooled.until_parked("j1")).life.waiting
    assert waiting is not None
    assert (waiting.why, len(waiting.approvals), waiting.children) == ("approval", 1, (tooled.child("j1"),))

    tooled.model.holds["work"].set()
    await tooled.platform.wait_for(tooled.child("j1"))
    # The end of the child wakes it; the person is still to decide.
    await approve(tooled, "j1")

    assert (await tooled.platform.wait_for("j1")).answer == "done"
    assert effects.amounts() == [5]
