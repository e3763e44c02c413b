"""A tenant's service and the registry killed in mid-call: a `once` tool over the bus never acts twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts.tools import ListTools, ToolList
from wayline.embedded.process import Child
from wayline.testkit import until
from wayline.testkit.fork_server import fork
from wayline.testkit.walks import seeds

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import TENANT, FaultPlatform, calls, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PROGRAM = Path(__file__).with_name("doomed_service.py")
QUICK = {Failpoint.REGISTRY_EFFECT_AFTER}
"""What `make test` runs of the registry's own kills."""
POINTS = [point for point in Failpoint if point.startswith("tool_registry.")]
EVERY_MOMENT = ("before", "acting", "acted", "answered")
MOMENTS = tuple(EVERY_MOMENT[turn] for turn in seeds(len(EVERY_MOMENT)))
"""Of a call, at which a service kills itself."""
INSTANCES, JOBS, KILLS = 3, 40, 15
DOWN = ("before", "acting", "acted")
"""Moments after which nobody can know whether the tool acted."""


class Services:
    """The processes of services on the bus, and what their tools did."""

    def __init__(self, platform: FaultPlatform, home: Path) -> None:
        self._platform = platform
        self._home = home
        self._file = home / "paid.txt"
        self.running: list[Child] = []

    def start(self, service: str, moment: str = "never") -> Child:
        """Start one more process of a service."""
        words = {"SERVICE": service, "EFFECTS": str(self._file), "DIES_WHEN": moment}
        env = {**os.environ, "WAYLINE_NATS_URL": self._platform.nats.url, **words}
        more = {"cwd": self._home, "log": self._home / f"{service}.log", "env": env}
        child = fork("runpy:run_path", str(PROGRAM), imports=["wayline.sdk"], **more)
        self.running.append(child)
        return child

    async def listed(self, *services: str) -> None:
        """Wait until the tools of these services are offered."""
        wanted = {f"{service}__pay" for service in services}

        async def offered() -> bool:
            found = await self._platform.bus.ask(ListTools(tenant=TENANT), ToolList, timeout_s=10)
            return wanted <= {tool.name for tool in found.tools}

        await until(offered, within=120, why=f"{wanted} are listed")

    def acted(self, *job_ids: str) -> dict[str, int]:
        """Count the effects for each call of these jobs."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return Counter(key for key in lines if key.split("/")[1] in job_ids)

    async def stop(self) -> None:
        for child in self.running:
            await child.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform()
    await platform.fleet.ensure("router", "executor", "tool_registry")
    return platform


@pytest_asyncio.fixture(loop_scope="module")
async def services(platform: FaultPlatform, tmp_path: Path) -> Any:
    services = Services(platform, tmp_path)
    yield services
    await services.stop()


@pytest.mark.timeout(280)
async def test_a_service_killed_at_any_moment_never_acts_twice(platform: FaultPlatform, services: Services):
    """The moments share the time that a silent service is waited for."""
    doomed = {moment: services.start(f"dies-{moment}", moment) for moment in MOMENTS}
    await services.listed(*(f"dies-{moment}" for moment in MOMENTS))
    for moment in MOMENTS:
        await platform.submit_plan(f"killed-{moment}", calls(f"dies-{moment}__pay"), says("done"))
    for moment, child in doomed.items():
        await until(lambda child=child: child.exited, within=60, why=f"the service dies: {moment}")
        services.start(f"dies-{moment}")

    jobs = [f"killed-{moment}" for moment in MOMENTS]
    await platform.until_ended(*jobs)
    await platform.until_quiet()

    await platform.check(*jobs)
    assert services.acted(*jobs) == {f"{TENANT}/killed-{moment}/1/1": 1 for moment in MOMENTS if moment != "before"}
    asked = {answer.split("/")[0] for answer in platform.answered}
    assert asked & set(jobs) == {f"killed-{moment}" for moment in MOMENTS if moment in DOWN}


@pytest.mark.parametrize("point", kill_points(((point,) for point in POINTS), QUICK))
async def test_a_registry_killed_there_lets_a_service_act_once(
    platform: FaultPlatform, services: Services, point: Failpoint
):
    job_id = f"bus-{point}".replace(".", "-")
    services.start("steady")
    await platform.fleet.stop("tool_registry")
    doomed = await platform.fleet.start("tool_registry", point)
    await services.listed("steady")

    await platform.submit_plan(job_id, calls("steady__pay"), says("done"))
    await platform.until_dead(doomed, job_id)
    await platform.fleet.start("tool_registry")
    await platform.until_ended(job_id)
    await platform.until_quiet()

    await platform.check(job_id)
    expected = {} if point is Failpoint.REGISTRY_LEDGER_AFTER else {f"{TENANT}/{job_id}/1/1": 1}
    assert services.acted(job_id) == expected


@pytest.mark.slow
async def test_a_registry_killed_while_a_service_acts_repeats_nothing(platform: FaultPlatform, services: Services):
    services.start("slow", "slow")
    await platform.fleet.ensure("tool_registry")
    await services.listed("slow")

    await platform.submit_plan("in-mid-call", calls("slow__pay"), says("done"))
    await until(lambda: services.acted("in-mid-call"), within=60, why="the tool has acted and works on")
    await platform.fleet.stop("tool_registry")
    await platform.fleet.start("tool_registry")
    await platform.until_ended("in-mid-call")
    await platform.until_quiet()

    await platform.check("in-mid-call")
    assert services.acted("in-mid-call") == {f"{TENANT}/in-mid-call/1/1": 1}


@pytest.mark.slow
@pytest.mark.timeout(280)
async def test_random_kills_of_services_and_registry_repeat_nothing(platform: FaultPlatform, services: Services):
    seed = int(os.environ.get("WAYLINE_FAULT_SEED") or random.randrange(10**6))
    print(f"random kills: WAYLINE_FAULT_SEED={seed}")
    chance = random.Random(seed)
    await platform.fleet.ensure("tool_registry")
    for _ in range(INSTANCES):
        services.start("shop")
    await services.listed("shop")
    jobs = [f"random-{n}" for n in range(JOBS)]
    left = set(jobs)
    for job_id in jobs:
        await platform.submit_plan(job_id, calls("shop__pay"), says("done"))

    for _ in range(KILLS):
        begun = len(services.acted(*jobs))
        await asyncio.sleep(chance.uniform(0, 0.3))
        victims = [child for child in services.running if not child.exited]
        if chance.random() < 0.2:
            await platform.fleet.stop("tool_registry")
            await platform.fleet.start("tool_registry")
        else:
            chance.choice(victims).process.send_signal(signal.SIGKILL)
            services.start("shop")

        async def goes_on(begun: int = begun) -> bool:
            left.difference_update(await platform.advance(*left))
            return not left or len(services.acted(*jobs)) > begun

        await until(goes_on, within=90, why="the jobs go on")
    await platform.until_ended(*jobs, within=150)
    await platform.until_quiet()

    await platform.check(*jobs)
    assert max(services.acted(*jobs).values()) == 1
