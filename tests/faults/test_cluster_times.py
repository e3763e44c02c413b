"""How long jobs wait when a leader of a cluster is killed or cut off, and what a job costs there; `make cluster-times`.

The figures are written into the file that WAYLINE_WRITE names.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles
from uuid import uuid4

import pytest

from wayline.testkit.nats_cluster import NAMES

from ..bench import page
from .clusters import SERVICES, ZONES, cluster_of, cut_off, leader_of, network_of, start_in_zones, until_healed
from .conftest import MakePlatform, restore_ack_waits
from .platform import FaultPlatform, says
from .test_outages import lasts

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.slow,
    pytest.mark.timeout(2_400),
    pytest.mark.skipif("WAYLINE_WRITE" not in os.environ, reason="it measures: `make cluster-times` runs it"),
]

KILLS = int(os.environ.get("WAYLINE_KILLS") or 20)
CUTS = int(os.environ.get("WAYLINE_CUTS") or 5)
ALONE = 50
AT_ONCE, TOGETHER = 16, 320
ROUNDS = 3
APART_S = 10.0
WITHIN_S = 120.0


async def test_the_times_of_a_cluster(make_platform: MakePlatform):
    load = os.getloadavg()[0]
    one = await make_platform(sync="always")
    await start(one)
    three = await make_platform(clustered=True, zones=ZONES, sync="always")
    await start(three)

    speeds = [(await speed(one), await speed(three)) for _ in range(ROUNDS)]
    rows = [
        ("the leader of the logs is killed", await times(three, KILLS, killed)),
        ("the leader of the logs is cut off, and stays so", await times(three, CUTS, cut)),
        (f"all three are apart for {APART_S:g} s: from the heal", await times(three, CUTS, apart)),
    ]
    text = report(rows, speeds, load)
    print(f"\n{text}")
    page.write(Path(os.environ["WAYLINE_WRITE"]), "times", text, by="make cluster-times")


async def start(platform: FaultPlatform) -> None:
    """Start the services with what an operator has: tickets of an executor that is gone come after 10 s."""
    await restore_ack_waits(platform.bus.js)
    if platform.zones:
        await start_in_zones(platform, *SERVICES)
    else:
        for name in (*SERVICES, *SERVICES):
            await platform.fleet.start(name)


async def plain_job(platform: FaultPlatform) -> float:
    """Run a job of one model call, and return how many seconds it took its submitter."""
    begun = time.monotonic()
    job_id = await platform.submit_plan(uuid4().hex, says("done"))
    await platform.until_ended(job_id, within=WITHIN_S)
    return time.monotonic() - begun


async def speed(platform: FaultPlatform) -> tuple[float, float]:
    """Return the median of a job alone in ms, and how many jobs end a second where there are always some."""
    alone = [await plain_job(platform) for _ in range(ALONE)]
    left = iter(range(TOGETHER))

    async def submitter() -> None:
        for _ in left:
            await plain_job(platform)

    begun = time.monotonic()
    await asyncio.gather(*(submitter() for _ in range(AT_ONCE)))
    return median(alone) * 1_000, TOGETHER / (time.monotonic() - begun)


async def times(platform: FaultPlatform, n: int, fault: Callable[[FaultPlatform], Awaitable[float]]) -> list[float]:
    """Do a fault so often, each time to a whole cluster, and return how long a job took that came with it."""
    found = []
    for _ in range(n):
        await network_of(platform).heal()
        await until_healed(platform)
        await plain_job(platform)
        found.append(await fault(platform))
        print(f"{fault.__name__}: {found[-1]:.2f} s")
    await network_of(platform).heal()
    await until_healed(platform)
    return found


async def killed(platform: FaultPlatform) -> float:
    leader = cluster_of(platform).servers[NAMES.index(await leader_of(platform, "EVENTS"))]
    await leader.kill()
    return await plain_job(platform)


async def cut(platform: FaultPlatform) -> float:
    await cut_off(platform, [await leader_of(platform, "EVENTS")])
    return await plain_job(platform)


async def apart(platform: FaultPlatform) -> float:
    await network_of(platform).cut(NAMES, NAMES)
    await lasts(APART_S)
    await network_of(platform).heal()
    return await plain_job(platform)


def report(rows: list[tuple[str, list[float]]], speeds: list[tuple[tuple[float, float], ...]], load: float) -> str:
    """Return both tables, and where they were measured."""
    head = ["what happens", "times", "p50, s", "p99 (of fewer than 100 the largest), s"]
    waits = page.table(
        head, [[name, str(len(found)), f"{median(found):.1f}", f"{p99(found):.1f}"] for name, found in rows]
    )
    (one_ms, one_s), (three_ms, three_s) = (
        [median(values) for values in zip(*(pair[at] for pair in speeds), strict=True)] for at in range(2)
    )
    cells = [
        ["a plain job alone, ms", f"{one_ms:.0f}", f"{three_ms:.0f}", f"{three_ms / one_ms:.2f}"],
        [f"jobs/s, {AT_ONCE} at once", f"{one_s:.0f}", f"{three_s:.0f}", f"{three_s / one_s:.2f}"],
    ]
    speed = page.table(["on one machine, median of three rounds in turn", "one server", "three", "ratio"], cells)
    return (
        "How long a job takes whose submission comes with the fault, of one model call that is answered at once:\n\n"
        f"{waits}\nAnd without faults, until its submitter has read the end of its log:\n\n{speed}\n"
        "Two replicas of router, tool-registry and executor; NATS writes through, onto a file system in memory; the "
        "cluster's links go through a proxy; `ack_wait` 10 s.\n"
        f"{page.machine(load)}\n"
    )


def p99(values: list[float]) -> float:
    """Return the value that one in a hundred exceeds; of fewer than a hundred, the largest."""
    return max(values) if len(values) < 100 else quantiles(values, n=100)[-1]
