"""A process killed around the start, the end or the stop of a child: there is one child for each call, and it ends."""

from __future__ import annotations

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.events import ChildStarted, JobSubmitted, ToolCompleted
from wayline.contracts.ids import child_id
from wayline.contracts.jobs import Cancel
from wayline.contracts.models import ModelCard, PutModel
from wayline.contracts.tools import RUN_AGENT
from wayline.journal import Job, JobLog
from wayline.testkit import until
from wayline.testkit.processes import ServiceProcess

from .conftest import MakePlatform
from .kill_points import kill_points
from .log_checks import story
from .platform import TENANT, FaultPlatform, Reply, encode_plan, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

POINTS = [
    Failpoint.EXECUTOR_CLAIM_AFTER,
    Failpoint.EXECUTOR_INTENT_AFTER,
    Failpoint.EXECUTOR_CHILD_BEFORE,
    Failpoint.EXECUTOR_CHILD_AFTER,
    Failpoint.EXECUTOR_PARK_BEFORE,
    Failpoint.EXECUTOR_PARK_AFTER,
    Failpoint.EXECUTOR_END_AFTER,
    Failpoint.EXECUTOR_SETTLE_AFTER,
    Failpoint.ROUTER_CHILD_BEFORE,
    Failpoint.ROUTER_CHILD_AFTER,
    Failpoint.ROUTER_PARENT_BEFORE,
    Failpoint.ROUTER_PARENT_AFTER,
]
SECOND = {Failpoint.EXECUTOR_CHILD_BEFORE, Failpoint.EXECUTOR_CHILD_AFTER}
"""Points that are reached at the second child, too."""
STOPS = [Failpoint.EXECUTOR_CLAIM_AFTER, Failpoint.EXECUTOR_STOP_CHILD_AFTER, Failpoint.EXECUTOR_END_BEFORE]
WAKES = {Failpoint.ROUTER_PARENT_BEFORE, Failpoint.ROUTER_PARENT_AFTER}
"""Reached where a parent is parked before its children end."""
PARKS = {Failpoint.EXECUTOR_PARK_BEFORE, Failpoint.EXECUTOR_PARK_AFTER}
"""Reached where children take longer than it takes to look whether they have ended."""
PASSAGES = [(point, nth) for point in POINTS for nth in ((1, 2) if point in SECOND else (1,))]
QUICK = {Failpoint.EXECUTOR_PARK_BEFORE, Failpoint.EXECUTOR_STOP_CHILD_AFTER, Failpoint.ROUTER_CHILD_AFTER}
"""What `make test` runs of them."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform()
    await platform.fleet.ensure("router", "tool_registry")
    card = ModelCard(provider="chat", model="x", tier="standard")
    await platform.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
    worker = AgentConfig(model="chat/x", tools=())
    await platform.bus.ask(PutAgent(tenant=TENANT, name="worker", config=worker), Agent)
    boss = AgentConfig(model="chat/x", tools=(), agents=("worker",))
    await platform.bus.ask(PutAgent(tenant=TENANT, name="boss", config=boss), Agent)
    return platform


def starts(*plans: Reply) -> Reply:
    """Return a turn of the model that starts a worker for each of these answers."""
    return {"tools": [[RUN_AGENT, {"agent": "worker", "input": encode_plan([plan])}] for plan in plans]}


async def arm(platform: FaultPlatform, point: Failpoint, nth: int = 1) -> ServiceProcess:
    """Start the only process of a service, which dies there; the others live."""
    service = point.split(".")[0]
    await platform.fleet.stop(service)
    await platform.fleet.ensure(*({"router", "executor"} - {service}))
    return await platform.fleet.start(service, point, nth=nth)


async def children_in_the_logs(platform: FaultPlatform, job_id: str) -> set[str]:
    """Return the jobs that have a log because of this one."""
    subjects = (await platform.bus.js.stream_info("EVENTS", subjects_filter=f"events.{TENANT}.*")).state.subjects
    found = {subject.split(".")[2] for subject in subjects or {} if subject.split(".")[2].startswith("child_")}
    firsts = {one: (await platform.events(one))[0] for one in found}
    return {one for one, first in firsts.items() if isinstance(first, JobSubmitted) and _parent(first) == job_id}


def _parent(first: JobSubmitted) -> str:
    assert first.parent is not None
    return first.parent.job_id


def waits(job: Job) -> bool:
    """Return whether a job is parked for its children."""
    return job.life.waiting is not None and bool(job.life.waiting.children)


@pytest.mark.parametrize(("point", "nth"), kill_points(PASSAGES, QUICK))
async def test_a_kill_there_leaves_one_child_for_each_call(platform: FaultPlatform, point: Failpoint, nth: int):
    name = f"{point}-{nth}".replace(".", "-")
    doomed = await arm(platform, point, nth)
    held = {"hold": name} if point in WAKES | PARKS else {}
    await platform.submit_plan(name, starts(says("one", **held), says("two")), says("done"), agent="boss")
    if point in WAKES:
        await platform.wait_until(name, waits, "the parent waits for its children")
        await until(lambda: name in platform.holds, within=60, why="the child's model is asked")
        platform.holds[name].set()
    await platform.until_dead(doomed, name)
    await platform.fleet.start(point.split(".")[0])
    if point in PARKS:
        await until(lambda: name in platform.holds, within=60, why="the child's model is asked")
        platform.holds[name].set()
    await platform.until_ended(name)
    await platform.until_quiet()

    children = [child_id(TENANT, name, 1, call) for call in ("1", "2")]
    await platform.check(name, *children)
    assert await children_in_the_logs(platform, name) == set(children)
    log = await platform.events(name)
    assert sorted(event.child_id for event in log if isinstance(event, ChildStarted)) == sorted(children)
    results = {event.call: event.content for event in log if isinstance(event, ToolCompleted)}
    assert results == {"1": "one", "2": "two"}
    assert {(await platform.job(job)).life.status for job in (name, *children)} == {"completed"}
    assert await platform.dead_letters() == []


@pytest.mark.parametrize("point", kill_points(((point,) for point in STOPS), QUICK))
async def test_a_cancelled_family_ends_after_a_kill_there(platform: FaultPlatform, point: Failpoint):
    name = f"stop-{point}".replace(".", "-")
    await platform.fleet.ensure("router", "executor")
    await platform.submit_plan(name, starts(says("one word", hold=name)), says("done"), agent="boss")
    await until(lambda: name in platform.holds, within=60, why="the child's model is asked")
    await platform.wait_until(name, waits, "the parent waits for its child")
    doomed = await arm(platform, point)
    await platform.signal(name, Cancel(reason="enough"))
    await platform.until_dead(doomed, name)
    await platform.fleet.start("executor")
    child = child_id(TENANT, name, 1, "1")
    await platform.until_ended(name, child)
    await platform.until_quiet()

    ended = {job: await platform.job(job) for job in (name, child)}
    assert {job.life.status for job in ended.values()} == {"cancelled"}
    # Rule 31: it ends after the child, or says that it did not wait for it any longer.
    last = {job: await JobLog(platform.bus, TENANT, job).last() for job in ended}
    order = [head.sequence for head in (last[child], last[name]) if head is not None]
    assert len(order) == 2
    assert order[0] < order[1] or child in (ended[name].life.reason or ""), story(await platform.records(name))
    assert await platform.dead_letters() == []
