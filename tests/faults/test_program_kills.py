"""An executor killed at every suspension of a program: the next one goes on, and no call is made twice."""

from __future__ import annotations

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts.agents import Agent, AgentConfig, PutAgent

from .conftest import MakePlatform
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform()
    await platform.fleet.ensure("router", "tool_registry")
    await platform.bus.ask(PutAgent(tenant=TENANT, name="coder", config=AgentConfig(code=True)), Agent)
    return platform


async def killed_at(platform: FaultPlatform, point: Failpoint, nth: int, *, name: str) -> None:
    doomed = await platform.fleet.start("executor", point, nth=nth)
    await platform.submit_plan(name, runs(PROGRAM), says("done"), agent="coder")
    await platform.until_dead(doomed, name)

    await platform.fleet.start("executor")
    await platform.until_ended(name)
    await platform.until_quiet()
    await platform.fleet.stop("executor")

    await platform.check(name)
    job = await platform.job(name)
    assert (job.life.status, job.model.step) == ("completed", 2)
    paid = [key for tool, key in platform.effects.calls() if tool == "pay_once" and f"/{name}/" in key]
    assert paid == [f"{TENANT}/{name}/1/c{n}" for n in range(1, SUSPENSIONS + 1)]


async def test_a_kill_between_two_calls_repeats_none(platform: FaultPlatform):
    await killed_at(platform, Failpoint.EXECUTOR_CODE_RESULT_AFTER, 2, name="between")


@pytest.mark.slow
@pytest.mark.parametrize(("point", "nth"), KILLS)
async def test_a_kill_at_any_suspension_repeats_no_call(platform: FaultPlatform, point: Failpoint, nth: int):
    await killed_at(platform, point, nth, name=f"{point.replace('.', '-')}-{nth}")
