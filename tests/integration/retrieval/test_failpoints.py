"""A retrieval process that is killed around storing and acking leaves every document whole and stored once."""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from typing import Any

import pytest

from wayline.chassis import Bus, BusSettings, Failpoint
from wayline.chassis.topology import INDEX_RETRIEVAL
from wayline.retrieval.app import INDEX_ATTEMPTS_MAX

ACK_WAIT_S = 1
RETRIEVAL = [point for point in Failpoint if point.startswith("retrieval.")]


async def process(settings: BusSettings, failpoint: str = "") -> asyncio.subprocess.Process:
    env = {
        **os.environ,
        "WAYLINE_NATS_URL": settings.nats_url,
        "WAYLINE_NATS_SEED": settings.nats_seed or "",
        "WAYLINE_NATS_ACCOUNTS": "true",
        "WAYLINE_POSTGRES_DSN": settings.postgres_dsn or "",
        "WAYLINE_FAILPOINT": failpoint,
    }
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "wayline.retrieval", env=env)


async def die(bus: Bus, times: int) -> None:
    """Take the queue's one message so often, and let nothing be heard of it."""
    pulled = await bus.js.pull_subscribe_bind(consumer=INDEX_RETRIEVAL.name, stream=INDEX_RETRIEVAL.stream)
    for _ in range(times):
        [message] = await pulled.fetch(1, timeout=10)
        await message.nak()


@pytest.fixture
async def impatient(client: Any) -> None:
    """What a killed process had in hand comes again soon."""
    await client.bus.js.add_consumer(INDEX_RETRIEVAL.stream, replace(INDEX_RETRIEVAL, ack_wait_s=ACK_WAIT_S).config())


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("point", RETRIEVAL)
async def test_a_document_is_stored_once_though_its_process_is_killed(
    point: Failpoint, bus_settings: BusSettings, client: Any, owner: Any
):
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


@pytest.mark.usefixtures("impatient")
async def test_a_document_that_kills_its_indexer_fails_with_a_reason(
    bus_settings: BusSettings, client: Any, start: Any, owner: Any
):
    await client.send("d1", "The tortoise wins.")
    killed = await process(bus_settings, Failpoint.RETRIEVAL_STORE_BEFORE)
    assert await asyncio.wait_for(killed.wait(), 30) == -signal.SIGKILL
    assert await owner("SELECT status FROM retrieval.documents") == [("indexing",)]
    await die(client.bus, INDEX_ATTEMPTS_MAX - 1)

    await start()
    await client.idle()

    document = await client.get("d1")
    assert (document.status, document.chunks_total) == ("failed", 1)
    assert "whoever handles it dies" in document.error
    letter = await client.bus.js.get_msg("DEAD", 1)
    assert letter.headers["Wayline-Dead-Code"] == "undeliverable"
    assert (await client.ingest("d1", "The hare wins.")).status == "ready"


@pytest.mark.usefixtures("impatient")
async def test_a_document_that_is_never_begun_is_failed_too(client: Any, start: Any, owner: Any):
    """Its message kills whoever reads it: the row says queued, as the gateway left it."""
    await client.send("d1", "The tortoise wins.")
    await die(client.bus, INDEX_ATTEMPTS_MAX)
    await owner(
        "INSERT INTO retrieval.documents (tenant, document_id, name, media_type, size_bytes, metadata, status) "
        "VALUES ('acme', 'd1', 'd1', 'text/plain', 1, '{}', 'queued')"
    )

    await start()
    await client.idle()

    assert (await client.get("d1")).status == "failed"
