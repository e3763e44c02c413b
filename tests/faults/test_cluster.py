"""Three NATS servers and two of every service: leaders killed, frozen, stepped down and wiped while jobs run."""

from __future__ import annotations

import random
import shutil

import pytest
import pytest_asyncio

from wayline.chassis.connection.bus import AWAY
from wayline.embedded import NatsServer
from wayline.standalone.doctor.bus import examine_copies
from wayline.testkit import until

from .clusters import HEALED_WITHIN_S, SERVICES, begin, cluster_of, end_well, until_healed
from .conftest import ACK_WAIT_S, MakePlatform
from .platform import ONCE, FaultPlatform, calls, says
from .test_outages import lasts
from .test_random_kills import seed_of_this_run

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(900)]

LED = ("EVENTS", "RUN", "SUBMIT", "SIGNALS", "LATER", "OBJ_PAYLOADS")
"""Streams whose leaders are met by faults: each other is led by some server too."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform(clustered=True)
    platform.reads_overlap = True
    for name in SERVICES:
        for _ in range(2):
            await platform.fleet.start(name)
    return platform


@pytest.mark.parametrize("stream", LED)
async def test_jobs_go_on_when_the_leader_of_a_stream_is_killed(platform: FaultPlatform, stream: str):
    await until_healed(platform)
    jobs = await begin(platform, f"killed-{stream}")
    leader = await cluster_of(platform).leader_of(platform.bus.js, stream)

    await leader.kill()
    jobs.append(await platform.submit_plan(f"beside-{stream}", calls(ONCE), says("done")))
    await platform.until_ended(*jobs, within=180)
    await leader.start()

    await end_well(platform, jobs)


async def test_jobs_go_on_when_a_leader_freezes_and_thaws(platform: FaultPlatform):
    await until_healed(platform)
    jobs = await begin(platform, "frozen")
    leader = await cluster_of(platform).leader_of(platform.bus.js, "EVENTS")

    leader.pause()
    try:
        await lasts(5 * ACK_WAIT_S)
    finally:
        leader.resume()

    await end_well(platform, jobs)


async def test_the_doctor_names_a_server_that_is_away(platform: FaultPlatform):
    await until_healed(platform)
    whole = await examine_copies(platform.bus.js)
    await cluster_of(platform).servers[2].kill()

    async def is_named() -> bool:
        try:
            found = await examine_copies(platform.bus.js)
        except AWAY:
            return False
        return found is not None and found.state == "problem" and found.text.startswith("server n2 is ")

    await until(is_named, within=HEALED_WITHIN_S, why="the killed server is named")
    await cluster_of(platform).servers[2].start()

    assert whole is not None and whole.state == "ok", whole


async def test_two_of_three_away_stop_everything_and_lose_nothing(platform: FaultPlatform):
    await until_healed(platform)
    jobs = await begin(platform, "minority")
    away = random.Random(seed_of_this_run()).sample(cluster_of(platform).servers, 2)

    for server in away:
        await server.kill()
    await lasts(3 * ACK_WAIT_S)
    for server in away:
        await server.start()

    await end_well(platform, jobs)


async def test_a_server_whose_data_was_wiped_gets_all_of_it_again(platform: FaultPlatform):
    await until_healed(platform)
    jobs = await begin(platform, "wiped")
    server = await cluster_of(platform).leader_of(platform.bus.js, "EVENTS")

    await server.kill()
    shutil.rmtree(server.data_dir / "jetstream")
    await server.start()

    await end_well(platform, jobs)
    await until_healed(platform)


async def test_leaders_that_step_down_one_after_the_other_disturb_nothing(platform: FaultPlatform):
    await until_healed(platform)
    jobs = await begin(platform, "stepped-down")

    for stream in LED:
        asked = f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}"
        answer = await platform.bus.nc.request(asked, b"", timeout=10)
        assert b'"success":true' in answer.data, answer.data

    await end_well(platform, jobs)


async def test_jobs_survive_faults_in_random_order(platform: FaultPlatform):
    seed = seed_of_this_run()
    print(f"faults of a cluster: WAYLINE_FAULT_SEED={seed}")
    draw = random.Random(seed)
    jobs: list[str] = []
    for n in range(8):
        await until_healed(platform)
        jobs += await begin(platform, f"random-{seed}-{n}", jobs=5)
        victim = draw.choice(cluster_of(platform).servers)
        fault = draw.choice([killed, frozen, drained])
        await fault(platform, victim, draw)

    await end_well(platform, jobs)


async def killed(_: FaultPlatform, victim: NatsServer, draw: random.Random) -> None:
    await victim.kill()
    await lasts(draw.random() * 2)
    await victim.start()


async def frozen(_: FaultPlatform, victim: NatsServer, draw: random.Random) -> None:
    victim.pause()
    await lasts(draw.random() * 4)
    victim.resume()


async def drained(platform: FaultPlatform, victim: NatsServer, draw: random.Random) -> None:
    """End a server as an operator would for an upgrade, and a replica of each service beside it."""
    for name in SERVICES:
        process = draw.choice(platform.fleet.running(name))
        platform.fleet.spawn(name)
        process.drain()
    await victim.stop()
    await victim.start()
    for process in platform.fleet.processes:
        if not process.exited:
            await process.ready()

    def replaced() -> bool:
        return all(len(platform.fleet.running(name)) == 2 for name in SERVICES)

    await until(replaced, within=60, why="the drained replicas are gone")
