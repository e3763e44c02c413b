"""What `wayline migrate` makes of a bus: what is missing is made, what has drifted is corrected."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from nats.js import errors as js_errors
from nats.js.api import KeyValueConfig, ObjectStoreConfig, StorageType

from wayline.chassis import Bus, BusSettings
from wayline.chassis.declare import WouldShrink, declare
from wayline.chassis.stream_limits import AGED, SIZED, Limits
from wayline.chassis.topology import (
    BUCKETS,
    CONSUMERS,
    CONTROLS,
    DAY_S,
    GIB,
    PAYLOADS,
    PROVIDERS,
    REPLIES,
    REPLIES_KEPT_S,
    REPLIES_MAX_BYTES,
    STREAMS,
    UPLOADS,
)
from wayline.embedded import NatsServer, minimal_config
from wayline.testkit import until
from wayline.testkit.fixtures import run

PLENTY = b'{"instructions": "' + b"e" * 400_000 + b'"}'


async def test_buckets_that_were_made_otherwise_are_corrected_like_streams(bus: Bus):
    await bus.js.create_object_store(PAYLOADS, ObjectStoreConfig(ttl=DAY_S, max_bytes=GIB))
    await bus.js.create_key_value(KeyValueConfig(bucket=PROVIDERS, ttl=DAY_S / 2))

    changes = [line async for line in declare(bus.js)]

    assert changes[len(STREAMS) : -len(CONSUMERS)] == [
        f"object store {PAYLOADS}: allow_rollup_hdrs, max_age, max_bytes corrected",
        f"object store {UPLOADS} created",
        f"object store {REPLIES} created",
        f"key-value bucket {PROVIDERS}: max_age corrected",
        f"key-value bucket {CONTROLS} created",
    ]
    for bucket in (PAYLOADS, UPLOADS):
        objects = (await bus.js.stream_info(f"OBJ_{bucket}")).config
        assert (objects.max_age, objects.max_bytes, objects.allow_rollup_hdrs) == (30 * DAY_S, 8 * GIB, False)
    assert [line async for line in declare(bus.js)] == []


async def test_large_replies_are_stored_after_the_server_has_restarted(bus: Bus, server: NatsServer):
    in_memory = ObjectStoreConfig(ttl=REPLIES_KEPT_S, max_bytes=REPLIES_MAX_BYTES, storage=StorageType.MEMORY)
    await bus.js.create_object_store(REPLIES, in_memory)
    assert f"object store {REPLIES} made anew, on disk" in [line async for line in declare(bus.js)]

    await server.restart()
    await until(lambda: bus.nc.is_connected, why="the bus is connected again")

    assert await bus.replies.check_in(PLENTY, "acme") != PLENTY
    assert [line async for line in declare(bus.js)] == []


async def test_a_store_of_payloads_in_memory_is_not_emptied(bus: Bus):
    held = await bus.js.create_object_store(PAYLOADS, ObjectStoreConfig(storage=StorageType.MEMORY))
    await held.put("kept", b"of a job")

    _ = [line async for line in declare(bus.js)]

    assert (await held.get("kept")).data == b"of a job"


async def test_a_log_in_memory_is_not_emptied(bus: Bus):
    _ = [line async for line in declare(bus.js, Limits(memory=True))]
    await bus.js.publish("events.acme.j1", b"a record")

    with pytest.raises(js_errors.APIError):
        _ = [line async for line in declare(bus.js)]

    assert (await bus.js.stream_info("EVENTS")).state.messages == 1


@pytest.fixture(scope="module")
def server(server_dir: Path) -> Iterator[NatsServer]:
    home = server_dir / "declared"
    server = NatsServer(home, config=minimal_config(home / "jetstream").replace("64GB", "200GB"))
    run(server.start())
    yield server
    run(server.stop())


@pytest.fixture
async def bus(server: NatsServer) -> AsyncIterator[Bus]:
    """A bus without streams."""
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)
    yield bus
    for stream in await bus.js.streams_info():
        assert stream.config.name is not None
        await bus.js.delete_stream(stream.config.name)
    await bus.close()


async def test_what_was_chosen_stays_through_ten_starts(bus: Bus):
    chosen = Limits(
        ack_wait_s=5, dead_max_per_tenant=20, max_bytes={"EVENTS": 20 * GIB}, max_age_s={"EVENTS": 90 * DAY_S}
    )
    changes = [line async for line in declare(bus.js, chosen)]

    again = [line for _ in range(10) async for line in declare(bus.js)]

    assert len(changes) == len(STREAMS) + len(CONSUMERS) + len(BUCKETS)
    assert again == []
    log, dead = [(await bus.js.stream_info(name)).config for name in ("EVENTS", "DEAD")]
    assert (log.max_bytes, log.max_age, dead.max_msgs_per_subject) == (20 * GIB, 90 * DAY_S, 20)
    assert (await bus.js.consumer_info("RUN", "interactive")).config.ack_wait == 5
    # A log is read with its payloads.
    assert (await bus.js.stream_info(f"OBJ_{PAYLOADS}")).config.max_age == 90 * DAY_S


async def test_what_an_operator_has_raised_by_hand_is_not_taken_back(bus: Bus):
    assert [line async for line in declare(bus.js)]
    log = (await bus.js.stream_info("EVENTS")).config
    await bus.js.update_stream(log.evolve(max_bytes=50 * GIB, max_age=60 * DAY_S))
    await bus.js.update_stream((await bus.js.stream_info("DEAD")).config.evolve(max_msgs_per_subject=5, max_age=DAY_S))

    changes = [line async for line in declare(bus.js)]

    log, dead = [(await bus.js.stream_info(name)).config for name in ("EVENTS", "DEAD")]
    assert (log.max_bytes, log.max_age) == (50 * GIB, 60 * DAY_S)
    assert (dead.max_msgs_per_subject, dead.max_age) == (1_000, 30 * DAY_S)
    assert changes == [
        "stream DEAD: max_age, max_msgs_per_subject corrected",
        f"object store {PAYLOADS}: max_age corrected",
    ]


async def test_less_than_there_is_needs_to_be_allowed(bus: Bus):
    assert [line async for line in declare(bus.js, Limits(max_bytes={"EVENTS": 20 * GIB, "SIGNALS": GIB}))]
    less = Limits(max_bytes={"EVENTS": GIB, "SIGNALS": 2 * GIB})

    with pytest.raises(WouldShrink, match=r"stream EVENTS: max_bytes is 21474836480 and would become 1073741824"):
        assert [line async for line in declare(bus.js, less)]
    untouched = [(await bus.js.stream_info(name)).config.max_bytes for name in ("EVENTS", "SIGNALS")]
    allowed = [line async for line in declare(bus.js, less, allow_shrink=True)]

    assert untouched == [20 * GIB, GIB]
    assert allowed == ["stream EVENTS: max_bytes corrected", "stream SIGNALS: max_bytes corrected"]
    assert [line async for line in declare(bus.js)] == []


async def test_what_nobody_chose_does_not_shrink_with_what_somebody_did(bus: Bus):
    assert [line async for line in declare(bus.js, Limits(max_bytes={"EVENTS": 20 * GIB}))]
    await bus.js.update_stream((await bus.js.stream_info("SIGNALS")).config.evolve(max_bytes=5 * GIB))

    less = Limits(max_bytes={"EVENTS": GIB})
    changes = [line async for line in declare(bus.js, less, allow_shrink=True)]

    assert changes == ["stream EVENTS: max_bytes corrected"]
    assert (await bus.js.stream_info("SIGNALS")).config.max_bytes == 5 * GIB


async def test_payloads_are_kept_no_longer_than_a_shortened_log(bus: Bus):
    assert [line async for line in declare(bus.js, Limits(max_age_s={"EVENTS": 90 * DAY_S}))]

    shorter = Limits(max_age_s={"EVENTS": 40 * DAY_S})
    with pytest.raises(WouldShrink, match=r"stream EVENTS: max_age .*; object store PAYLOADS: max_age "):
        assert [line async for line in declare(bus.js, shorter)]
    assert [line async for line in declare(bus.js, shorter, allow_shrink=True)]

    ages = [(await bus.js.stream_info(name)).config.max_age for name in ("EVENTS", f"OBJ_{PAYLOADS}")]
    assert ages == [40 * DAY_S, 40 * DAY_S]
    assert [line async for line in declare(bus.js)] == []


async def test_work_that_waits_has_no_age_and_no_choice_of_one():
    assert not AGED & {"SUBMIT", "RUN", "INDEX", REPLIES}
    assert {PAYLOADS, UPLOADS} < SIZED
