"""Snapshots of streams by the server's API: in many pieces, with sequences and consumers, and queues that go on."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest
from nats.js.api import ConsumerConfig, DeliverPolicy, DiscardPolicy, RetentionPolicy, StreamConfig
from nats.js.errors import APIError

from wayline.chassis import Bus, BusSettings
from wayline.contracts.jobs import RunJob
from wayline.standalone.backup import recover_jobs, stream_snapshots
from wayline.standalone.backup.fill_queue import fill_queue
from wayline.standalone.backup.stream_snapshots import (
    durable_consumers,
    make_consumer,
    restore_snapshot,
    stream_info,
    stream_names,
    take_snapshot,
)
from wayline.standalone.errors import BackupFailed
from wayline.testkit import until
from wayline.testkit.fixtures import NatsFactory
from wayline.testkit.guarded import ADMIN, identity_seeds
from wayline.testkit.nats_cluster import NatsCluster

LARGE = 200 * 1024


async def connect(nats_factory: NatsFactory) -> Bus:
    server = await nats_factory()
    return await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)


async def test_a_stream_of_many_pieces_is_restored_with_its_sequences(nats_factory: NatsFactory):
    source, target = await connect(nats_factory), await connect(nats_factory)
    await source.js.add_stream(StreamConfig(name="LOG", subjects=["log.*"]))
    await source.js.add_consumer("LOG", ConsumerConfig(durable_name="reader"))
    bodies = [secrets.token_bytes(LARGE) for _ in range(60)]
    for n, body in enumerate(bodies):
        await source.js.publish(f"log.{n % 3}", body)
    await source.js.delete_msg("LOG", 2)
    reader = await source.js.pull_subscribe_bind("reader", "LOG")
    for message in await reader.fetch(10, timeout=10):
        await message.ack_sync()
    chunks: list[bytes] = []

    taken = await take_snapshot(source.nc, "LOG", chunks.append)
    [consumer] = await durable_consumers(source.nc, "LOG")
    await restore_snapshot(target.nc, taken["config"], taken["state"], chunks)
    await make_consumer(target.nc, "LOG", consumer["config"], heard=consumer["ack_floor"]["stream_seq"])

    assert len(chunks) > 50
    state = (await target.js.stream_info("LOG")).state
    assert (state.messages, state.first_seq, state.last_seq) == (59, 1, 60)
    assert (await target.js.get_msg("LOG", 60)).data == bodies[59]
    again = await target.js.pull_subscribe_bind("reader", "LOG")
    [next_one] = await again.fetch(1, timeout=10)
    assert next_one.metadata.sequence.stream == 12
    await source.close()
    await target.close()


async def test_a_restore_waits_for_the_last_server_of_a_cluster(
    nats_factory: NatsFactory, server_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    source, chunks, refused = await connect(nats_factory), list[bytes](), list[str]()
    await source.js.add_stream(StreamConfig(name="LOG", subjects=["log.*"]))
    await source.js.publish("log.1", b"kept")
    taken = await take_snapshot(source.nc, "LOG", chunks.append)
    cluster = NatsCluster.of(server_dir / f"young-{secrets.token_hex(4)}", identity_seeds())
    no_place = stream_snapshots.no_place_yet
    monkeypatch.setattr(stream_snapshots, "no_place_yet", lambda answer: no_place(answer) and not refused.append("yes"))
    try:
        await asyncio.gather(*(server.start() for server in cluster.servers[:2]))
        target = await Bus.connect(cluster.settings(ADMIN), service="test", exit_when_closed=False)
        assert await stream_names(target.nc) == []
        restoring = asyncio.create_task(
            restore_snapshot(target.nc, taken["config"] | {"num_replicas": 3}, taken["state"], chunks)
        )
        await until(lambda: refused or restoring.done(), why="two servers have no place for three copies")
        await cluster.servers[2].start()

        assert (await restoring)["messages"] == 1
        await target.close()
    finally:
        await cluster.kill()
    await source.close()


async def test_logs_that_are_not_read_are_not_taken_for_none(
    nats_factory: NatsFactory, monkeypatch: pytest.MonkeyPatch
):
    bus = await connect(nats_factory)
    await bus.js.add_stream(StreamConfig(name="EVENTS", subjects=["events.*.*"]))
    for n in range(4):
        await bus.js.publish(f"events.acme.job{n}", b"")
    monkeypatch.setattr(recover_jobs, "READ_BATCH", 2)
    seen: list[str] = []

    with pytest.raises(BackupFailed, match="left out 2 of the logs' messages"):
        async for subject, _, _ in recover_jobs._headers(bus, DeliverPolicy.LAST_PER_SUBJECT):
            seen.append(subject)
            await bus.js.purge_stream("EVENTS")
            monkeypatch.setattr(recover_jobs, "READ_WITHIN_S", 0.1)

    assert seen == ["events.acme.job0", "events.acme.job1"]
    await bus.close()


async def test_a_damaged_snapshot_makes_no_stream(nats_factory: NatsFactory):
    bus = await connect(nats_factory)
    await bus.js.add_stream(StreamConfig(name="LOG", subjects=["log.*"]))
    await bus.js.publish("log.1", secrets.token_bytes(LARGE))
    chunks: list[bytes] = []
    taken = await take_snapshot(bus.nc, "LOG", chunks.append)
    await bus.js.delete_stream("LOG")

    with pytest.raises(BackupFailed):
        await restore_snapshot(bus.nc, taken["config"], taken["state"], [b"".join(chunks)[: LARGE // 2]])
    await bus.close()


async def test_a_queue_goes_on_behind_its_old_sequences(nats_factory: NatsFactory):
    bus = await connect(nats_factory)
    queue = StreamConfig(
        name="RUN",
        subjects=["jobs.run.*.*"],
        retention=RetentionPolicy.WORK_QUEUE,
        discard=DiscardPolicy.NEW,
        discard_new_per_subject=True,
        max_msgs_per_subject=600,
    )
    await bus.js.add_stream(queue)
    await bus.js.publish("jobs.run.batch.acme", b"waits")
    tickets = {n: RunJob(tenant="acme", lane="batch", job=f"j{n}", at=n) for n in (1_200, 1_201, 1_700)}

    assert await fill_queue(bus, "RUN", 1_700, tickets) == 3

    state = (await bus.js.stream_info("RUN")).state
    assert (state.messages, state.last_seq) == (4, 1_700)
    assert b'"j1201"' in (await bus.js.get_msg("RUN", 1_201)).data
    assert (await bus.js.publish("jobs.run.batch.acme", b"new")).seq == 1_701
    assert await fill_queue(bus, "RUN", 1_000) == 0
    await bus.close()


@pytest.mark.parametrize("discard", DiscardPolicy, ids=str)
async def test_a_full_queue_is_advanced_and_keeps_what_it_holds(nats_factory: NatsFactory, discard: DiscardPolicy):
    bus = await connect(nats_factory)
    queue = StreamConfig(
        name="RUN", subjects=["jobs.run.*.*"], discard=discard, max_bytes=64 * 1024, metadata={"chosen": "by a user"}
    )
    await bus.js.add_stream(queue)
    for _ in range(100):
        try:
            await bus.js.publish("jobs.run.batch.acme", bytes(2_000))
        except APIError:
            break
    before = await stream_info(bus.nc, "RUN")
    ticket = RunJob(tenant="acme", lane="batch", job="j", at=1_500)

    assert await fill_queue(bus, "RUN", 1_700, {1_500: ticket}) == 1

    after = await stream_info(bus.nc, "RUN")
    held, holds = before["state"], after["state"]
    assert holds["last_seq"] == 1_700
    assert holds["messages"] == held["messages"] + 1
    assert (await bus.js.get_msg("RUN", 1_500)).data
    assert after["config"] == before["config"]
    await bus.close()
