"""An executor killed at each of its failpoints, one by one: another goes on, and nothing is done twice."""

from __future__ import annotations

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts.agents import Agent, AgentConfig, PutAgent, Routing
from wayline.contracts.models import ModelCard, PutModel, Tier
from wayline.testkit import until

from .conftest import MakeWorld
from .world import CLOCK, EVERY_EFFECT, IDEMPOTENT, ONCE, TENANT, World, calls, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

HAND_BACKS = [point for point in Failpoint if point.startswith("executor.hand_back.")]
POINTS = [point for point in Failpoint if point.startswith("executor.") and point not in HAND_BACKS]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(make_world: MakeWorld) -> World:
    world = await make_world()
    await world.fleet.ensure("router", "tool_registry")
    # A type of task is asked for only where the answer can change the model.
    tiers: dict[str, Tier] = {"sorter": "flash", "plain": "standard", "dear": "premium"}
    for model, tier in tiers.items():
        card = ModelCard(provider="chat", model=model, tier=tier)
        await world.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
    routing = Routing(fast="chat/sorter", primary="chat/plain", escalation="chat/dear")
    sorter = AgentConfig(routing=routing, classify=True)
    await world.bus.ask(PutAgent(tenant=TENANT, name="sorter", config=sorter), Agent)
    return world


@pytest.mark.parametrize("point", POINTS)
async def test_after_a_kill_there_another_executor_ends_every_job_once(world: World, point: Failpoint):
    name = point.replace(".", "-")
    both, asking, sorted_ = f"{name}-effects", f"{name}-decision", f"{name}-sorted"
    # Two unknown outcomes: the second decision is written by a holder that holds the job already.
    for call in ("1", "2"):
        await world.forget_outcome(asking, 1, call)

    doomed = await world.fleet.start("executor", point)
    await world.submit(both, calls(CLOCK, *EVERY_EFFECT), calls(IDEMPOTENT), says("done"))
    await world.submit(asking, calls(ONCE, ONCE), says("decided"))
    await world.submit(sorted_, says("negotiation"), agent="sorter", model=None)
    await world.until_dead(doomed, both, asking)

    fresh = await world.fleet.start("executor")
    await world.until_ended(both, asking, sorted_)
    await world.until_quiet()
    await world.fleet.stop("executor")

    assert not fresh.log.read_text().count("Traceback"), fresh.tail
    await world.check(both, asking, sorted_)
    for tool in ("pay_once", "put_idempotent", "book_reconcile"):
        # The registry lived on, and the next executor was told what the ledger knew.
        ran = [key for said, key in world.effects.calls() if said == tool and f"/{both}/1/" in key]
        assert len(ran) == 1, (tool, ran)
    assert {(await world.job(job)).life.status for job in (both, asking, sorted_)} == {"completed"}
    asked = [attempt for attempt, _ in world.chat.calls if f"/{sorted_}/0/a" in attempt]
    assert len(asked) <= 1, "nobody is asked twice which type of task it is"
    assert await world.dead_letters() == []


@pytest.mark.parametrize("point", HAND_BACKS)
async def test_a_job_ends_after_its_executor_was_killed_handing_it_back(world: World, point: Failpoint):
    name = point.replace(".", "-")
    doomed = await world.fleet.start("executor", point)
    await world.submit(name, calls(ONCE, hold=name), says("done"))
    await until(lambda: name in world.holds, within=60, why="the model call is under way")
    doomed.drain()
    world.holds[name].set()
    await world.until_dead(doomed)

    await world.fleet.start("executor")
    await world.until_ended(name)
    await world.until_quiet()
    await world.fleet.stop("executor")

    await world.check(name)
    assert (await world.job(name)).life.status == "completed"
    assert await world.dead_letters() == []
