"""The disk of one server of a cluster is full while jobs run: the others go on."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from wayline.testkit.disks import SmallDisk, small_disk

from .clusters import SERVICES, begin, cluster_of, end_well, until_healed
from .conftest import MakePlatform
from .platform import EVERY_EFFECT, FaultPlatform, calls, says

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(600)]

DISK_MB = 64


@pytest.fixture(scope="module")
def disk(server_dir: Path) -> Iterator[SmallDisk]:
    with small_disk(server_dir / f"disk-{secrets.token_hex(4)}", megabytes=DISK_MB) as disk:
        yield disk


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(disk: SmallDisk, make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform(clustered=True, nats_disks=(disk.path, None, None))
    platform.reads_overlap = True
    for name in (*SERVICES, *SERVICES):
        await platform.fleet.start(name)
    return platform


async def test_jobs_go_on_while_the_disk_of_one_server_is_full(platform: FaultPlatform, disk: SmallDisk):
    await until_healed(platform)
    jobs = await begin(platform, "disk-full")
    server = cluster_of(platform).servers[0]

    disk.fill()
    jobs += [await platform.submit_plan(f"disk-full-{n}-beside", calls(*EVERY_EFFECT), says("done")) for n in range(6)]
    await platform.until_ended(*jobs, within=180)
    disk.free()
    # A JetStream that met a full disk stores nothing more until its server is restarted.
    await server.restart()

    await end_well(platform, jobs)
