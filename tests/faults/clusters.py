"""A platform on three NATS servers: its jobs, how its network is cut, and what must be true when all is whole again."""

from __future__ import annotations

from collections.abc import Sequence

from wayline.chassis.connection.bus import AWAY
from wayline.chassis.topology import STREAMS
from wayline.testkit import until
from wayline.testkit.nats_cluster import NAMES, TEST, NatsCluster
from wayline.testkit.network import Network

from .platform import EVERY_EFFECT, ONCE, FaultPlatform, calls, says
from .zones import POSTGRES

SERVICES = ("router", "tool_registry", "executor")
ZONES = ("a", "b")
JOBS = 6
HEALED_WITHIN_S = 60.0


def cluster_of(platform: FaultPlatform) -> NatsCluster:
    assert isinstance(platform.nats, NatsCluster)
    return platform.nats


def network_of(platform: FaultPlatform) -> Network:
    network = cluster_of(platform).network
    assert network is not None
    return network


async def start_in_zones(platform: FaultPlatform, *names: str) -> None:
    """Start one of each service in every zone."""
    for process in [platform.spawn_in(zone, name) for zone in platform.zones for name in names]:
        await process.ready()


async def leader_of(platform: FaultPlatform, stream: str) -> str:
    """Return the name of the server that leads a stream now."""
    cluster = cluster_of(platform)
    return NAMES[cluster.servers.index(await cluster.leader_of(platform.bus.js, stream))]


async def cut_off(platform: FaultPlatform, nodes: Sequence[str]) -> None:
    """Cut nodes off from all others; the test itself stays with the others, and finds a server there."""
    network = network_of(platform)
    others = [node for node in (*NAMES, *platform.zones, POSTGRES, TEST) if node not in nodes]
    await network.cut(nodes, others)
    # Its own connection would notice after some pings.
    await network.reset([TEST], nodes)


async def until_healed(platform: FaultPlatform) -> None:
    """Start what is away, and wait until every stream has a leader and two followers that have all of it."""
    await cluster_of(platform).start()
    behind: list[str] = []

    async def healed() -> bool:
        behind.clear()
        try:
            streams = [await platform.bus.js.stream_info(stream.name or "") for stream in STREAMS]
        except AWAY:
            return False
        for stream in streams:
            cluster = stream.cluster
            followers = [] if cluster is None else cluster.replicas or []
            if cluster is None or not cluster.leader or sum(bool(one.current) for one in followers) != 2:
                behind.append(stream.config.name or "")
        return not behind

    await until(healed, within=HEALED_WITHIN_S, why=f"every stream is whole; behind: {behind}")


async def begin(platform: FaultPlatform, name: str, jobs: int = JOBS) -> list[str]:
    """Submit jobs, and wait until the first has had an effect."""
    names = [f"{name}-{n}" for n in range(jobs)]
    for job_id in names:
        await platform.submit_plan(job_id, calls(*EVERY_EFFECT), calls(*EVERY_EFFECT), calls(ONCE), says("done"))

    def acted() -> bool:
        return any(f"/{name}-" in key for _, key in platform.effects.calls())

    await until(acted, within=60, why="the jobs are at work")
    return names


async def end_well(platform: FaultPlatform, jobs: list[str]) -> None:
    """Every job ends once, completed; no `once` acted twice; nothing was put aside, and no service died of it."""
    await platform.until_ended(*jobs, within=180)
    await platform.until_quiet(60)
    await until_healed(platform)
    await platform.check(*jobs)
    assert {(await platform.job(job_id)).life.status for job_id in jobs} == {"completed"}
    assert await platform.dead_letters() == []
    assert [len(platform.fleet.running(name)) for name in SERVICES] == [2, 2, 2]
