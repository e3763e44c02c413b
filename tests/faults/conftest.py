"""One platform of separate processes a module: real servers, real services, a scripted model and counted effects."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from wayline.chassis.connection.leaders import once_led
from wayline.chassis.stream_limits import Limits
from wayline.chassis.topology import CONSUMERS, Consumer
from wayline.embedded import PostgresServer
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit.databases import clone, clone_with_tables, drop, make_template
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.fixtures import FAST, ForkedNats
from wayline.testkit.guarded import Guarded, config, identity_seeds
from wayline.testkit.nats_cluster import SERVERS, NatsCluster
from wayline.testkit.network import Network
from wayline.testkit.postgres_pair import PostgresPair

from .platform import FaultPlatform
from .zones import POSTGRES, Zone

# Its comparisons are whole books: a failure has to say where they differ.
pytest.register_assert_rewrite(f"{__package__}.books")

ACK_WAIT_S = 1.0
LIMITS = Limits(ack_wait_s=ACK_WAIT_S)
LIMITS_OF_A_CLUSTER = Limits(ack_wait_s=ACK_WAIT_S, replicas=3)
LEASE_S = 1.0
DELAY_MS = 50
"""Of a counted effect: long enough for a kill to fall into it."""

MakePlatform = Callable[..., Awaitable[FaultPlatform]]


async def shorten_ack_waits(js: JetStreamContext) -> None:
    """Have the messages of a killed service come again soon, whichever it was."""
    await _set_ack_waits(js, ACK_WAIT_S)


async def restore_ack_waits(js: JetStreamContext) -> None:
    """Have messages come again when operators see them again: where the network is slow a second is too short."""
    await _set_ack_waits(js, None)


async def _set_ack_waits(js: JetStreamContext, seconds: float | None) -> None:
    async def put(consumer: Consumer) -> None:
        present = (await js.consumer_info(consumer.stream, consumer.name)).config
        await js.add_consumer(consumer.stream, present.evolve(ack_wait=seconds or consumer.ack_wait_s))

    for consumer in CONSUMERS:
        # A bus of the last release has not all of them, and a cluster may have no leader for a moment.
        with suppress(NotFoundError):
            await once_led(partial(put, consumer))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def own_postgres(server_dir: Path) -> AsyncIterator[PostgresServer]:
    """A Postgres of the module's own: to kill, or to move to."""
    server = PostgresServer(server_dir / secrets.token_hex(4) / "postgres", settings=FAST)
    await server.start()
    await make_template(server)
    yield server
    await server.kill()
    shutil.rmtree(server.data_dir, ignore_errors=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(server_dir: Path) -> AsyncIterator[PostgresPair]:
    """A Postgres of the module's own with a synchronous standby, to be promoted."""
    home = server_dir / secrets.token_hex(4)
    pair = PostgresPair(home / "first", settings={**FAST, "wal_level": "replica", "max_wal_senders": "4"})
    await pair.start()
    await make_template(pair)
    standby = await pair.add_standby(home / "standby")
    yield pair
    await pair.kill()
    await standby.kill()
    shutil.rmtree(home, ignore_errors=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def make_platform(postgres_server: PostgresServer, server_dir: Path) -> AsyncIterator[MakePlatform]:
    """Make platforms; nothing of them is left after the module."""
    async with AsyncExitStack() as stack:

        async def make(
            *tables: str,
            delay_ms: int = DELAY_MS,
            postgres: PostgresServer | None = None,
            sync: str = "2m",
            nats_disk: Path | None = None,
            clustered: bool = False,
            nats_disks: Sequence[Path | None] = (None,) * SERVERS,
            zones: Sequence[str] = (),
        ) -> FaultPlatform:
            home = server_dir / f"platform-{secrets.token_hex(4)}"
            home.mkdir()
            seeds = identity_seeds()
            guarded: Guarded
            if clustered:
                network = Network(home / "network.log")
                stack.push_async_callback(network.stop)
                guarded = nats = NatsCluster.of(home / "nats", seeds, network=network, disks=nats_disks, sync=sync)
                urls = {zone: nats.url_from(zone) for zone in zones}
                server = postgres or postgres_server
                standby = server.standby if isinstance(server, PostgresPair) else None
                there = [one.port for one in (server, standby) if one is not None]
                ports = {zone: {port: network.link(zone, POSTGRES, port) for port in there} for zone in zones}
                assert nats.url
            else:
                urls, ports = {}, {}
                directory = (nats_disk or home) / "nats"
                text = config(directory / "jetstream", seeds, sync_interval=sync)
                guarded = Guarded(nats := ForkedNats(directory, config=text), seeds)
            stack.push_async_callback(nats.kill)
            await nats.start()
            database = await (clone_with_tables(postgres_server) if postgres is None else clone(postgres))
            if postgres is None:
                stack.push_async_callback(drop, database)
            stack.callback(_nobody_was_refused, guarded)
            chat = await stack.enter_async_context(ChatServer(turns(Say())))
            effects = EffectsServer(home / "effects.txt", delay_ms=delay_ms)
            stack.callback(effects.kill)
            await effects.start()
            # Last, so that its services end before what they talk to.
            platform = await stack.enter_async_context(
                FaultPlatform.open(guarded, database, limits=LIMITS_OF_A_CLUSTER if clustered else LIMITS)
            )
            await shorten_ack_waits(platform.bus.js)
            platform.chat, platform.effects, chat.script = chat, effects, platform.script
            platform.fleet = await platform.make_fleet(home, "router", "tool_registry", *tables)
            equip(platform)
            if clustered:
                platform.zones = {zone: Zone(urls[zone], ports[zone]) for zone in zones}
            await platform.watch()
            return platform

        yield make


def _nobody_was_refused(guarded: Guarded) -> None:
    """But for answers: a server that was killed has forgotten who had asked, and whoever had asks again."""
    assert [refusal for refusal in guarded.refusals() if '"_INBOX' not in refusal and '"_R_.' not in refusal] == []


def equip(platform: FaultPlatform) -> None:
    """Give every service its addresses and short waits."""
    fleet = platform.fleet
    fleet.set("executor", WAYLINE_CHAT_BASE_URL=platform.chat.url, WAYLINE_EXECUTOR_TOOL_WAIT_S=2)
    fleet.set(
        "tool_registry",
        WAYLINE_TOOL_REGISTRY_SERVERS=[platform.effects.settings()],
        WAYLINE_TOOL_REGISTRY_LEASE_S=LEASE_S,
        WAYLINE_TOOL_REGISTRY_ANSWER_WITHIN_S=1,
        WAYLINE_TOOL_REGISTRY_RECONNECT_WAIT_MAX_S=0.3,
        # A frozen server is frozen for us, not for the registry to give up.
        WAYLINE_TOOL_REGISTRY_PROBE_EVERY_S=600,
    )
