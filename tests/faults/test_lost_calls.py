"""`kill -9` in a model call: the call is in the log once as unsettled, by the id that the provider was told."""

from __future__ import annotations

import pytest
import pytest_asyncio

from wayline.contracts.events import LOST, ModelFailed
from wayline.journal import read_record
from wayline.testkit import until

from .conftest import MakePlatform
from .platform import FaultPlatform, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform()
    await platform.fleet.ensure("router", "tool_registry")
    return platform


async def test_a_killed_executors_call_is_unsettled_once_and_tried_again(platform: FaultPlatform):
    doomed = await platform.fleet.start("executor")
    # The first call of this name is held after its first word; the next one goes through.
    await platform.submit_plan("lost", says("the whole answer", hold="lost"))
    await until(lambda: "lost" in platform.holds, within=60, why="the model is writing")
    doomed.kill()

    await platform.fleet.start("executor")
    await platform.until_ended("lost")
    await platform.until_quiet()
    await platform.fleet.stop("executor")

    asked = [attempt for attempt, _ in platform.chat.calls if attempt.startswith("default/lost/")]
    events = [event for record in await platform.records("lost") for event in read_record(record.data)]
    failed = [event for event in events if isinstance(event, ModelFailed)]
    assert asked == ["default/lost/1/m1", "default/lost/1/m2"]
    assert [(event.error.code, event.attempt_id) for event in failed] == [(LOST, asked[0])]
    assert failed[0].unsettled is not None
    assert (await platform.job("lost")).life.status == "completed"
    await platform.check("lost")
