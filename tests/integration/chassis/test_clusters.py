"""A process on a cluster: it leaves a server that was cut off, and gets messages from the next leader."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig, StreamConfig

from wayline.chassis import Bus
from wayline.chassis.connection.bus import AWAY
from wayline.chassis.connection.leaders import once_led
from wayline.chassis.deaf_servers import DeafServers
from wayline.chassis.handling import pull
from wayline.chassis.topology import RUN_INTERACTIVE
from wayline.testkit import until
from wayline.testkit.guarded import ADMIN, identity_seeds
from wayline.testkit.nats_cluster import NAMES, SERVERS, TEST, NatsCluster
from wayline.testkit.network import Network

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PROCESS = "process"
COPIES = {"PROBES": "probe.*", "RUN": "jobs.run.*.*"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(server_dir: Path) -> AsyncIterator[NatsCluster]:
    home = server_dir / f"cluster-{secrets.token_hex(4)}"
    home.mkdir()
    network = Network(home / "network.log")
    cluster = NatsCluster.of(home, identity_seeds(), network=network)
    cluster.url_from(TEST), cluster.url_from(PROCESS)
    try:
        await cluster.start()
        yield cluster
    finally:
        await cluster.kill()
        await network.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def test_bus(cluster: NatsCluster) -> AsyncIterator[Bus]:
    """Connect as the test, and make streams with three copies."""
    bus = await Bus.connect(cluster.settings(ADMIN), service="test", exit_when_closed=False)
    for name, subject in COPIES.items():
        config = StreamConfig(name=name, subjects=[subject], num_replicas=SERVERS)
        await once_led(lambda config=config: bus.js.add_stream(config))
    consumer = ConsumerConfig(durable_name=RUN_INTERACTIVE.name, ack_wait=30)
    await once_led(lambda: bus.js.add_consumer("RUN", consumer))
    yield bus
    await bus.close()


@pytest_asyncio.fixture(loop_scope="module")
async def bus(cluster: NatsCluster, test_bus: Bus) -> AsyncIterator[Bus]:
    """Connect as a process of its own in the network."""
    settings = cluster.settings(ADMIN).model_copy(update={"nats_url": cluster.url_from(PROCESS)})
    bus = await Bus.connect(settings, service="process", exit_when_closed=False)
    yield bus
    await bus.close()


def server_of(bus: Bus, cluster: NatsCluster) -> str | None:
    """Return the name of the server that a process is connected to; None while it connects."""
    if bus.nc.connected_url is None:
        return None
    ports = [int(url.rpartition(":")[2]) for url in cluster.url_from(PROCESS).split(",")]
    return NAMES[ports.index(bus.nc.connected_url.port or 0)]


async def test_a_process_leaves_a_server_that_was_cut_off(cluster: NatsCluster, bus: Bus):
    assert cluster.network is not None
    first = server_of(bus, cluster)
    assert first is not None
    deaf = DeafServers(bus, look_every_s=0.1, deaf_after_s=1.0)
    await deaf.start()

    await cluster.network.cut([first], [name for name in NAMES if name != first])

    async def stores() -> bool:
        return server_of(bus, cluster) not in {first, None} and await is_stored(bus)

    try:
        await until(stores, why="the process stores over another server")
    finally:
        await deaf.stop(0)
        await cluster.network.heal()


async def is_stored(bus: Bus) -> bool:
    try:
        return "error" not in (await bus.request("probe.process", b"", timeout_s=1)).data.decode()
    except AWAY:
        return False


@pytest.mark.slow
async def test_an_open_pull_outlives_the_leader_that_knew_it(
    cluster: NatsCluster, test_bus: Bus, bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    # What the killed leader was asked for would expire long after the test.
    monkeypatch.setattr(pull, "ASK_S", 600.0)
    taken: list[Msg] = []
    asking = pull.Pull(bus, RUN_INTERACTIVE, taken.append, slots=4)
    leader = await until(lambda: led_elsewhere(cluster, test_bus, bus), why="the pull's leader is another server")
    await asking.start()
    await test_bus.store("jobs.run.interactive.default", b"{}", {}, within_s=30)
    await until(lambda: taken, why="the message comes from the leader")
    # What the other servers know of the pull stands in their log before this ack, and they answer for it.
    await taken.pop().ack_sync(timeout=30)

    await leader.kill()
    try:
        await test_bus.store("jobs.run.interactive.default", b"{}", {}, within_s=30)
        await until(lambda: taken, why="the message comes from the next leader")
    finally:
        await asking.stop()
        await leader.start()


async def led_elsewhere(cluster: NatsCluster, test_bus: Bus, bus: Bus):
    """Return the server that leads the consumer; None, after it was told to step down: it is the process's own."""
    info = (await once_led(lambda: test_bus.js.consumer_info("RUN", RUN_INTERACTIVE.name))).cluster
    name = info.leader if info is not None else None
    if name is not None and name != server_of(bus, cluster):
        return cluster.servers[NAMES.index(name)]
    await test_bus.nc.request(f"$JS.API.CONSUMER.LEADER.STEPDOWN.RUN.{RUN_INTERACTIVE.name}", b"", timeout=5)
    await asyncio.wait_for(test_bus.nc.flush(), 5)
    return None
