"""An executor killed at every suspension of a program: the next one goes on, and no call is made twice.

`make test` has such a kill in `test_executor_failpoints.py`, at a snapshot.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.testkit import until
from wayline.testkit.effects_server import EffectsServer

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import TENANT, FaultPlatform, runs, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PROGRAM = """
paid = []
for n in range(4):
    paid.append(await effects__pay_once(amount=n))
paid
"""
SUSPENSIONS = 4
AT_A_CALL = (Failpoint.EXECUTOR_TOOL_BEFORE, Failpoint.EXECUTOR_TOOL_AFTER)
AT_A_RESULT = (Failpoint.EXECUTOR_CODE_RESULT_BEFORE, Failpoint.EXECUTOR_CODE_RESULT_AFTER)
KILLS = [(point, nth) for point in AT_A_CALL for nth in range(1, SUSPENSIONS + 1)]
# The last result shares its record with the end of the program, which is another failpoint.
KILLS += [(point, nth) for point in AT_A_RESULT for nth in range(1, SUSPENSIONS)]


SLOW_MS = 1_500
GATHERS = """
import asyncio
first = await effects__pay_once(amount=0)
paid = await asyncio.gather(slow__pay_once(amount=1), slow__pay_once(amount=2))
[first, *paid, await effects__pay_once(amount=3)]
"""
"""Two calls are pending where it is suspended."""
ASKS = """
import asyncio
async def pay(amount):
    try:
        return await effects__pay_once(amount=amount)
    except PermissionError:
        return "denied"
looked = await effects__put_idempotent(value="b")
[looked, *await asyncio.gather(pay(1), pay(2))]
"""
"""Two approvals are pending where it is suspended; the first is given, the second is not."""
DRAINS = [point for point in Failpoint if point.startswith(("executor.snapshot.", "executor.hand_back."))]
PARKS = [Failpoint.EXECUTOR_PARK_BEFORE, Failpoint.EXECUTOR_PARK_AFTER, *DRAINS[:2]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> AsyncIterator[FaultPlatform]:
    platform = await make_platform()
    slow = platform.slow = EffectsServer(platform.effects.file, delay_ms=SLOW_MS)
    await slow.start()
    servers = [platform.effects.settings(), slow.settings(name="slow")]
    platform.fleet.set("tool_registry", WAYLINE_TOOL_REGISTRY_SERVERS=servers)
    await platform.fleet.ensure("router", "tool_registry")
    await platform.bus.ask(PutAgent(tenant=TENANT, name="coder", config=AgentConfig(code=True)), Agent)
    asking = AgentConfig(code=True, ask_tools={"effects__pay_once": "always"})
    await platform.bus.ask(PutAgent(tenant=TENANT, name="asking", config=asking), Agent)
    yield platform
    slow.kill()


async def killed_at(platform: FaultPlatform, point: Failpoint, nth: int, *, name: str) -> None:
    doomed = await platform.fleet.start("executor", point, nth=nth)
    await platform.submit_plan(name, runs(PROGRAM), says("done"), agent="coder")
    await platform.until_dead(doomed, name)

    assert await taken_over(platform, name) == [f"c{n}" for n in range(1, SUSPENSIONS + 1)]


async def taken_over(platform: FaultPlatform, name: str) -> list[str]:
    """Have another executor end a job whose holder was killed, and return the payments that its program made."""
    await platform.fleet.start("executor")
    await platform.until_ended(name)
    await platform.until_quiet()
    await platform.fleet.stop("executor")

    await platform.check(name)
    job = await platform.job(name)
    assert (job.life.status, job.model.step) == ("completed", 2)
    own = f"{TENANT}/{name}/1/"
    return [key.removeprefix(own) for tool, key in platform.effects.calls() if tool == "pay_once" and own in key]


@pytest.mark.slow
@pytest.mark.parametrize(("point", "nth"), KILLS)
async def test_a_kill_at_any_suspension_repeats_no_call(platform: FaultPlatform, point: Failpoint, nth: int):
    await killed_at(platform, point, nth, name=f"{point.replace('.', '-')}-{nth}")


@pytest.mark.parametrize("point", kill_points(((point,) for point in DRAINS), ()))
async def test_a_kill_while_a_drain_suspends_a_program_repeats_no_call(platform: FaultPlatform, point: Failpoint):
    name = f"drained-{point.replace('.', '-')}"
    doomed = await platform.fleet.start("executor", point)
    await platform.submit_plan(name, runs(GATHERS), says("done"), agent="coder")
    for call in ("c2", "c3"):
        key = f"{TENANT}/{name}/1/{call}"
        await until(partial(platform.effects.has_begun, "pay_once", key), within=60, why=f"{call} has begun")
    # Neither can end before the drain has given up waiting for it.
    platform.slow.pause()
    doomed.drain()
    await platform.until_dead(doomed)
    platform.slow.resume()

    paid = await taken_over(platform, name)

    assert (paid[0], sorted(paid[1:3]), paid[3:]) == ("c1", ["c2", "c3"], ["c4"])


@pytest.mark.parametrize("point", kill_points(((point,) for point in PARKS), ()))
async def test_a_kill_while_two_approvals_park_a_program_repeats_nothing(platform: FaultPlatform, point: Failpoint):
    name = f"parked-{point.replace('.', '-')}"
    doomed = await platform.fleet.start("executor", point)
    await platform.submit_plan(name, runs(ASKS), says("done"), agent="asking")
    await platform.until_dead(doomed)

    paid = await taken_over(platform, name)

    assert paid == ["c2"]
    assert platform.effects.count("put_idempotent", f"{TENANT}/{name}/1/c1") == 1
