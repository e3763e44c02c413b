"""A router or an executor killed while a job's words are handed to the job that runs: they are said once."""

from __future__ import annotations

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.testkit import until

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import CLOCK, TENANT, FaultPlatform, calls, encode_plan, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

ROUTER = [
    Failpoint.ROUTER_STEER_BEFORE,
    Failpoint.ROUTER_STEER_AFTER,
    Failpoint.ROUTER_RECORD_AFTER,
    Failpoint.ROUTER_ACK_AFTER,
]
EXECUTOR = [
    (Failpoint.EXECUTOR_INTENT_BEFORE, 2),
    (Failpoint.EXECUTOR_INTENT_AFTER, 2),
    (Failpoint.EXECUTOR_STEER_BEFORE, 1),
    (Failpoint.EXECUTOR_STEER_AFTER, 1),
    (Failpoint.EXECUTOR_MODEL_AFTER, 2),
    (Failpoint.EXECUTOR_CLAIM_AFTER, 2),
    (Failpoint.EXECUTOR_END_BEFORE, 1),
    (Failpoint.EXECUTOR_END_AFTER, 1),
    (Failpoint.EXECUTOR_ACK_AFTER, 1),
]
"""Each with how often it is reached: the second time is after the words have come, or of the job that brought them."""
QUICK = {Failpoint.ROUTER_STEER_AFTER, Failpoint.EXECUTOR_STEER_BEFORE}
"""What `make test` runs of them."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform()
    await platform.fleet.ensure("tool_registry")
    return platform


async def begin(platform: FaultPlatform, name: str) -> tuple[str, str]:
    """Begin a job whose model is answering, and return its id and that of the one that will steer it."""
    running, steering = f"{name}-running", f"{name}-steering"
    plan = (says("first", hold=name), calls(CLOCK), says("done"))
    await platform.submit_plan(running, *plan, session=name)
    await until(lambda: name in platform.holds, within=60, why="the model is answering")
    return running, steering


async def check(platform: FaultPlatform, running: str, steering: str) -> None:
    """Check that the words were said once: in the running job, or in a turn of their own."""
    await platform.until_ended(running, steering)
    await platform.until_quiet()
    await platform.check(running, steering)
    first, second = await platform.job(running), await platform.job(steering)
    assert (first.life.status, second.life.status) == ("completed", "completed")
    handed = second.session.handed_to is not None
    assert (first.session.steered_by == (steering,)) == handed
    assert handed != (second.model.asked is not None)
    ours = tuple(f"{TENANT}/{job_id}/" for job_id in (running, steering))
    last = [body for attempt, body in platform.chat.calls if attempt.startswith(ours)][-1]
    words = encode_plan([says("steered")])
    assert sum(words in str(message["content"]) for message in last["messages"]) == 1
    assert await platform.dead_letters() == []


@pytest.mark.parametrize("point", kill_points(((point,) for point in ROUTER), QUICK))
async def test_a_router_killed_there_loses_and_repeats_no_words(platform: FaultPlatform, point: Failpoint):
    name = point.replace(".", "-")
    await platform.fleet.ensure("router", "executor")
    running, steering = await begin(platform, name)
    await platform.fleet.stop("router")
    doomed = await platform.fleet.start("router", point)

    await platform.submit_plan(steering, says("steered"), session=name, when_busy="steer")
    await platform.until_dead(doomed)
    await platform.fleet.start("router")
    if point is not Failpoint.ROUTER_STEER_BEFORE:
        await platform.wait_until(steering, lambda job: job.life.waiting is not None, "it waits")
    platform.holds[name].set()

    await check(platform, running, steering)


@pytest.mark.parametrize(("point", "nth"), kill_points(EXECUTOR, QUICK))
async def test_an_executor_killed_there_loses_and_repeats_no_words(platform: FaultPlatform, point: Failpoint, nth: int):
    name = point.replace(".", "-")
    await platform.fleet.stop("executor")
    await platform.fleet.ensure("router")
    doomed = await platform.fleet.start("executor", point, nth=nth)
    running, steering = await begin(platform, name)
    await platform.submit_plan(steering, says("steered"), session=name, when_busy="steer")
    await platform.wait_until(steering, lambda job: job.life.waiting is not None, "it waits")
    await platform.wait_until_empty("SUBMIT")
    platform.holds[name].set()

    await platform.until_dead(doomed, running, steering)
    await platform.fleet.start("executor")

    await check(platform, running, steering)


async def test_words_are_in_the_log_before_the_call_with_them(platform: FaultPlatform):
    await platform.fleet.ensure("router", "executor")
    running, steering = await begin(platform, "log")
    await platform.submit_plan(steering, says("steered"), session="log", when_busy="steer")
    await platform.wait_until(steering, lambda job: job.life.waiting is not None, "it waits")
    await platform.wait_until_empty("SUBMIT")
    platform.holds["log"].set()
    await check(platform, running, steering)

    kinds = [event.type for event in await platform.events(running)]
    if "session.steered" in kinds:
        assert kinds.index("session.steered") < max(n for n, kind in enumerate(kinds) if kind == "model.requested")
    assert isinstance((await platform.events(steering))[-1], e.JobCompleted)
