"""What `wayline migrate` makes of a bus: what is missing is made, what has drifted is corrected."""

from nats.js.api import KeyValueConfig, ObjectStoreConfig

from wayline.chassis import Bus, BusSettings
from wayline.chassis.topology import DAY_S, GIB, PAYLOADS, PROVIDERS, REPLIES, UPLOADS, declare


async def test_buckets_that_were_made_otherwise_are_corrected_like_streams(nats_factory):
    server = await nats_factory()
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)
    await bus.js.create_object_store(PAYLOADS, ObjectStoreConfig(ttl=DAY_S, max_bytes=GIB))
    await bus.js.create_key_value(KeyValueConfig(bucket=PROVIDERS, ttl=DAY_S / 2))

    changes = [line async for line in declare(bus.js)]

    assert changes[-4:] == [
        f"object store {PAYLOADS}: allow_rollup_hdrs, max_age, max_bytes corrected",
        f"object store {UPLOADS} created",
        f"object store {REPLIES} created",
        f"key-value bucket {PROVIDERS}: max_age corrected",
    ]
    for bucket in (PAYLOADS, UPLOADS):
        objects = (await bus.js.stream_info(f"OBJ_{bucket}")).config
        assert (objects.max_age, objects.max_bytes, objects.allow_rollup_hdrs) == (30 * DAY_S, 8 * GIB, False)
    assert [line async for line in declare(bus.js)] == []
    await bus.close()
