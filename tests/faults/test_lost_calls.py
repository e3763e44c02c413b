"""`kill -9` in a model call: the call is in the log once as unsettled, by the id that the provider was told."""

from __future__ import annotations

import pytest
import pytest_asyncio

from wayline.contracts.events import LOST, ModelFailed
from wayline.journal import read_record
from wayline.testkit import until

from .conftest import MakeWorld
from .world import World, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(make_world: MakeWorld) -> World:
    world = await make_world()
    await world.fleet.ensure("router", "tool_registry")
    return world


async def test_a_killed_executors_call_is_unsettled_once_and_tried_again(world: World):
    doomed = await world.fleet.start("executor")
    # The first call of this name is held after its first word; the next one goes through.
    await world.submit("lost", says("the whole answer", hold="lost"))
    await until(lambda: "lost" in world.holds, within=60, why="the model is writing")
    doomed.kill()

    await world.fleet.start("executor")
    await world.until_ended("lost")
    await world.until_quiet()
    await world.fleet.stop("executor")

    asked = [attempt for attempt, _ in world.chat.calls if attempt.startswith("default/lost/")]
    events = [event for record in await world.records("lost") for event in read_record(record.data)]
    failed = [event for event in events if isinstance(event, ModelFailed)]
    assert asked == ["default/lost/1/m1", "default/lost/1/m2"]
    assert [(event.error.code, event.attempt_id) for event in failed] == [(LOST, asked[0])]
    assert failed[0].unsettled is not None
    assert (await world.job("lost")).life.status == "completed"
    await world.check("lost")
