"""A retrieval process that is killed around storing and acking leaves every document whole and stored once."""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from typing import Any

import pytest

from wayline.chassis import BusSettings, Failpoint
from wayline.chassis.topology import INDEX_RETRIEVAL

ACK_WAIT_S = 1
RETRIEVAL = [point for point in Failpoint if point.startswith("retrieval.")]


async def process(settings: BusSettings, failpoint: str = "") -> asyncio.subprocess.Process:
    env = {
        **os.environ,
        "WAYLINE_NATS_URL": settings.nats_url,
        "WAYLINE_POSTGRES_DSN": settings.postgres_dsn or "",
        "WAYLINE_FAILPOINT": failpoint,
    }
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "wayline.retrieval", env=env)


@pytest.mark.parametrize("point", RETRIEVAL)
async def test_a_document_is_stored_once_though_its_process_is_killed(
    point: Failpoint, bus_settings: BusSettings, client: Any, owner: Any
):
    await client.bus.js.add_consumer(INDEX_RETRIEVAL.stream, replace(INDEX_RETRIEVAL, ack_wait_s=ACK_WAIT_S).config())
    await client.send("d1", "The tortoise wins.\n\n" + "filler " * 300)

    killed = await process(bus_settings, point)
    assert await asyncio.wait_for(killed.wait(), 30) == -signal.SIGKILL
    survivor = await process(bus_settings)
    try:
        await client.idle()

        assert (await client.get("d1")).status == "ready"
        [(chunks, counted)] = await owner(
            "SELECT count(*), max(c.chunks) FROM retrieval.chunks, retrieval.corpora AS c"
        )
        assert chunks == counted == 3
    finally:
        survivor.terminate()
        await survivor.wait()
