"""A cluster whose network is cut, slow or lossy while jobs run: the majority goes on, the rest writes nothing."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
import pytest_asyncio

from wayline.chassis.connection.bus import AWAY
from wayline.contracts.events import JobClaimed
from wayline.journal import header_fields, read_record
from wayline.standalone.doctor.bus import examine_copies
from wayline.testkit import until
from wayline.testkit.nats_cluster import NAMES, TEST

from .clusters import (
    SERVICES,
    ZONES,
    begin,
    cut_off,
    end_well,
    leader_of,
    network_of,
    start_in_zones,
    until_healed,
)
from .conftest import ACK_WAIT_S, MakePlatform, restore_ack_waits, shorten_ack_waits
from .platform import EVERY_EFFECT, ONCE, FaultPlatform, calls, says
from .test_outages import lasts
from .zones import POSTGRES

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(600)]

DELAY_S = 0.2
LOST = 0.2
WHILE_CUT_S = 120.0
FENCED = re.compile(r"fenced +job=cut-off$", re.MULTILINE)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform(clustered=True, zones=ZONES)
    platform.reads_overlap = True
    await start_in_zones(platform, *SERVICES)
    return platform


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def whole(platform: FaultPlatform) -> None:
    """Begin each test with a network that is whole, also after one that failed."""
    await network_of(platform).heal()
    await until_healed(platform)


@pytest.mark.parametrize("leads", [True, False], ids=["leader", "follower"])
async def test_jobs_go_on_while_one_server_is_cut_off(platform: FaultPlatform, leads: bool):
    jobs = await begin(platform, f"cut-{leads}")
    leader = await leader_of(platform, "EVENTS")
    victim = leader if leads else next(name for name in NAMES if name != leader)

    await cut_off(platform, [victim])
    jobs.append(await platform.submit_plan(f"cut-{leads}-beside", calls(ONCE), says("done")))
    await platform.until_ended(*jobs, within=WHILE_CUT_S)
    await network_of(platform).heal()

    await end_well(platform, jobs)


async def test_jobs_go_on_while_the_leaders_zone_is_cut_off(platform: FaultPlatform):
    jobs = await begin(platform, "zone")
    leader = await leader_of(platform, "EVENTS")

    await cut_off(platform, [leader, "a"])
    jobs.append(await platform.submit_plan("zone-beside", calls(*EVERY_EFFECT), says("done")))
    await platform.until_ended(*jobs, within=WHILE_CUT_S)
    await network_of(platform).heal()

    await end_well(platform, jobs)


@pytest.mark.parametrize("deaf", [True, False], ids=["hears-nothing", "is-not-heard"])
async def test_jobs_go_on_when_a_leaders_one_direction_is_lost(platform: FaultPlatform, deaf: bool):
    jobs = await begin(platform, f"one-way-{deaf}")
    leader = await leader_of(platform, "EVENTS")
    others = [node for node in (*NAMES, *ZONES, TEST) if node != leader]

    network = network_of(platform)
    await (network.cut(others, [leader], one_way=True) if deaf else network.cut([leader], others, one_way=True))
    await network.reset([TEST], [leader])
    jobs.append(await platform.submit_plan(f"one-way-{deaf}-beside", calls(ONCE), says("done")))
    await platform.until_ended(*jobs, within=WHILE_CUT_S)
    await network.heal()

    await end_well(platform, jobs)


async def test_jobs_end_with_200_ms_between_all_nodes(platform: FaultPlatform):
    nodes = (*NAMES, *ZONES, POSTGRES)
    # In the tests' second no word of an executor is heard in time, and a job goes from one to the other for ever.
    await restore_ack_waits(platform.bus.js)
    try:
        await network_of(platform).slow(nodes, nodes, delay_s=DELAY_S)
        jobs = await begin(platform, "slow")
        await end_well(platform, jobs)
    finally:
        await network_of(platform).heal()
        await shorten_ack_waits(platform.bus.js)


async def test_jobs_end_where_a_fifth_of_packets_is_lost(platform: FaultPlatform):
    leader = await leader_of(platform, "EVENTS")
    await network_of(platform).lose([leader], (*NAMES, *ZONES), share=LOST, one_way=True)
    jobs = await begin(platform, "lossy")

    await end_well(platform, jobs)


async def test_the_doctor_says_how_far_a_server_is_behind(platform: FaultPlatform):
    leader = await leader_of(platform, "PROBES")
    victim = next(name for name in NAMES if name != leader)
    # The test, too: it would stay with a server that answers its connection and nothing else.
    await network_of(platform).cut([name for name in (*NAMES, TEST) if name != victim], [victim], one_way=True)
    await network_of(platform).reset([TEST], [victim])

    async def is_told() -> bool:
        with suppress(*AWAY):
            await platform.bus.request("probe.test", b"", timeout_s=1)
            found = await examine_copies(platform.bus.js)
            return found is not None and bool(re.search(rf"server {victim} is behind .*lacks .* of PROBES", found.text))
        return False

    await until(is_told, within=60, why="the doctor says what the server lacks")


async def test_three_servers_apart_stop_everything_and_lose_nothing(platform: FaultPlatform):
    jobs = await begin(platform, "apart")

    await network_of(platform).cut(NAMES, NAMES)
    await lasts(10 * ACK_WAIT_S)
    await network_of(platform).heal()

    await end_well(platform, jobs)


async def test_jobs_go_on_while_a_zone_reaches_no_postgres(platform: FaultPlatform):
    jobs = await begin(platform, "no-postgres")

    await network_of(platform).cut(["a"], [POSTGRES])
    jobs.append(await platform.submit_plan("no-postgres-beside", calls(*EVERY_EFFECT), says("done")))
    await platform.until_ended(*jobs, within=WHILE_CUT_S)
    await network_of(platform).heal()

    await end_well(platform, jobs)


async def test_an_executor_that_was_cut_off_writes_nothing(platform: FaultPlatform):
    held = says("too late", hold="cut-off")
    job_id = await platform.submit_plan("cut-off", calls(*EVERY_EFFECT), held)
    await until(lambda: "cut-off" in platform.holds, within=60, why="the model is asked")
    first = await holder_of(platform, job_id)
    zone = platform.zone_of[first]

    await network_of(platform).cut([zone], NAMES)

    async def taken_over() -> bool:
        return await holder_of(platform, job_id) != first

    await until(taken_over, within=60, why="another executor has claimed the job")
    # The first hears the end of its answer now, and says so to a bus that does not hear it.
    platform.holds["cut-off"].set()
    await platform.until_ended(job_id, within=60)
    records = await platform.records(job_id)
    await network_of(platform).heal()
    await until(lambda: FENCED.search(log_of(platform, first)), within=90, why="the first is refused")
    await end_well(platform, [job_id])

    after = await platform.records(job_id)
    assert [record.data for record in after] == [record.data for record in records]
    owners = [header_fields(record.headers or {})["owner"] for record in after]
    assert owners == sorted(owners, key=owners.index), "the first wrote again after the second"
    assert platform.effects.repeated("pay_once") == {}


def log_of(platform: FaultPlatform, pid: int) -> str:
    """Return what a process has printed."""
    return next(process for process in platform.fleet.processes if process.pid == pid).log.read_text()


async def holder_of(platform: FaultPlatform, job_id: str) -> int:
    """Return the process of the executor that claimed a job last."""
    records = await platform.records(job_id)
    claims = [event for record in records for event in read_record(record.data) if isinstance(event, JobClaimed)]
    return int(claims[-1].executor.rpartition("-")[2])
