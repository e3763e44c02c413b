"""An executor killed at each of its failpoints, one by one: another goes on, and nothing is done twice."""

from __future__ import annotations

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts.agents import Agent, AgentConfig, PutAgent, Routing
from wayline.contracts.models import ModelCard, PutModel, Tier
from wayline.testkit import until

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import CLOCK, EVERY_EFFECT, IDEMPOTENT, ONCE, READ, TENANT, FaultPlatform, calls, runs, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PROGRAM = """
import asyncio
looked = await effects__look_read(query="a")
done = await asyncio.gather(effects__pay_once(), effects__put_idempotent(value=looked), effects__book_reconcile())
looked = await effects__look_read(query=done[0])
decided = await effects__pay_once(amount=2)
[looked, *done, decided]
"""
"""Its last call is one whose outcome nobody knows: the program is suspended, and its job waits."""
PAYING = """
import asyncio
async def pay(amount):
    try:
        return await effects__pay_once(amount=amount)
    except PermissionError:
        return "denied"
looked = await effects__look_read(query="b")
await asyncio.gather(pay(1), pay(2))
"""
"""Each payment needs an approval; of two that wait at once, the first is given."""
HAND_BACKS = [point for point in Failpoint if point.startswith("executor.hand_back.")]
CHILDREN = {Failpoint.EXECUTOR_CHILD_BEFORE, Failpoint.EXECUTOR_CHILD_AFTER, Failpoint.EXECUTOR_STOP_CHILD_AFTER}
"""Reached by jobs that start others alone: `test_children.py`."""
EXTRACTION = {Failpoint.EXECUTOR_MEMORY_AFTER}
"""Reached where a session has gone quiet: `test_extractions.py`."""
ELSEWHERE = {*HAND_BACKS, *CHILDREN, *EXTRACTION, Failpoint.EXECUTOR_STEER_BEFORE, Failpoint.EXECUTOR_STEER_AFTER}
"""Points that these jobs do not reach."""
POINTS = [point for point in Failpoint if point.startswith("executor.") and point not in ELSEWHERE]
QUICK = {Failpoint.EXECUTOR_SNAPSHOT_AFTER, Failpoint.EXECUTOR_APPROVAL_AFTER, Failpoint.EXECUTOR_HAND_BACK_BEFORE}
"""What `make test` runs of them. Others kill there too: after a claim `rules/test_tickets.py`, in a model call
`test_lost_calls.py` and `test_conservation.py`, between a tool and its result `test_paid_searches.py`. A job that has
ended and is not settled is what rule 18 is about."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform()
    await platform.fleet.ensure("router", "tool_registry")
    # A type of task is asked for only where the answer can change the model.
    tiers: dict[str, Tier] = {"sorter": "flash", "plain": "standard", "dear": "premium"}
    for model, tier in tiers.items():
        card = ModelCard(provider="chat", model=model, tier=tier)
        await platform.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
    routing = Routing(fast="chat/sorter", primary="chat/plain", escalation="chat/dear")
    sorter = AgentConfig(routing=routing, classify=True)
    await platform.bus.ask(PutAgent(tenant=TENANT, name="sorter", config=sorter), Agent)
    await platform.bus.ask(PutAgent(tenant=TENANT, name="careful", config=AgentConfig(ask="writes")), Agent)
    await platform.bus.ask(PutAgent(tenant=TENANT, name="coder", config=AgentConfig(code=True)), Agent)
    asking = AgentConfig(code=True, ask="writes")
    await platform.bus.ask(PutAgent(tenant=TENANT, name="careful-coder", config=asking), Agent)
    return platform


@pytest.mark.parametrize("point", kill_points(((point,) for point in POINTS), QUICK))
async def test_after_a_kill_there_another_executor_ends_every_job_once(platform: FaultPlatform, point: Failpoint):
    name = point.replace(".", "-")
    both, asking, sorted_ = f"{name}-effects", f"{name}-decision", f"{name}-sorted"
    reading = f"{name}-reading"
    approving, coded, paying = f"{name}-approval", f"{name}-coded", f"{name}-paying"
    # Two unknown outcomes: the second decision is written by a holder that holds the job already.
    for call in ("1", "2"):
        await platform.forget_outcome(asking, 1, call)
    await platform.forget_outcome(coded, 1, "c6")

    doomed = await platform.fleet.start("executor", point)
    await platform.submit_plan(both, calls(CLOCK, *EVERY_EFFECT), calls(IDEMPOTENT), says("done"))
    await platform.submit_plan(asking, calls(ONCE, ONCE), says("decided"))
    await platform.submit_plan(sorted_, says("negotiation"), agent="sorter", model=None)
    await platform.submit_plan(reading, calls(CLOCK, READ), calls(READ), says("done"))
    await platform.submit_plan(approving, calls(ONCE, ONCE, READ), says("done"), agent="careful")
    await platform.submit_plan(coded, runs(PROGRAM), says("done"), agent="coder")
    await platform.submit_plan(paying, runs(PAYING), says("done"), agent="careful-coder")
    await platform.until_dead(doomed, both, asking, approving, coded, paying)

    fresh = await platform.fleet.start("executor")
    await platform.until_ended(both, asking, sorted_, reading, approving, coded, paying)
    await platform.until_quiet()
    await platform.fleet.stop("executor")

    assert not fresh.log.read_text().count("Traceback"), fresh.tail
    await platform.check(both, asking, sorted_, reading, approving, coded, paying)
    for tool in ("pay_once", "put_idempotent", "book_reconcile"):
        # The registry lived on, and the next executor was told what the ledger knew.
        for job in (both, coded):
            ran = [key for tool_name, key in platform.effects.calls() if tool_name == tool and f"/{job}/1/" in key]
            assert len(ran) == 1, (tool, ran)
    # Of two calls that waited for a person, one was approved.
    paid = [key for tool_name, key in platform.effects.calls() if tool_name == "pay_once" and f"/{approving}/" in key]
    assert paid == [f"{TENANT}/{approving}/1/1"]
    paid = [key for tool_name, key in platform.effects.calls() if tool_name == "pay_once" and f"/{paying}/" in key]
    assert paid == [f"{TENANT}/{paying}/1/c2"]
    ended = [(await platform.job(job)).life.status for job in (both, asking, sorted_, approving, coded, paying)]
    assert set(ended) == {"completed"}
    asked = [attempt for attempt, _ in platform.chat.calls if f"/{sorted_}/0/a" in attempt]
    assert len(asked) <= 1, "nobody is asked twice which type of task it is"
    assert await platform.dead_letters() == []


@pytest.mark.parametrize("point", kill_points(((point,) for point in HAND_BACKS), QUICK))
async def test_a_job_ends_after_its_executor_was_killed_handing_it_back(platform: FaultPlatform, point: Failpoint):
    name = point.replace(".", "-")
    doomed = await platform.fleet.start("executor", point)
    await platform.submit_plan(name, calls(ONCE, hold=name), says("done"))
    await until(lambda: name in platform.holds, within=60, why="the model call is under way")
    doomed.drain()
    platform.holds[name].set()
    await platform.until_dead(doomed)

    await platform.fleet.start("executor")
    await platform.until_ended(name)
    await platform.until_quiet()
    await platform.fleet.stop("executor")

    await platform.check(name)
    assert (await platform.job(name)).life.status == "completed"
    assert await platform.dead_letters() == []
