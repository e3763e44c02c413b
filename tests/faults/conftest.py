"""One platform of separate processes a module: real servers, real services, a scripted model and counted effects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from nats.js import JetStreamContext

from wayline.chassis import Bus
from wayline.chassis.topology import CONSUMERS, Limits, declare
from wayline.embedded import NatsServer, PostgresServer
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit.databases import Database, clone, drop
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.guarded import ADMIN, Guarded, config, new_seeds
from wayline.testkit.processes import Fleet

from .world import World

# Its comparisons are whole books: a failure has to say where they differ.
pytest.register_assert_rewrite(f"{__package__}.books")

ACK_WAIT_S = 1.0
LEASE_S = 1.0
DELAY_MS = 50
"""Of a counted effect: long enough for a kill to fall into it."""

MakeWorld = Callable[..., Awaitable[World]]


async def declare_quick(js: JetStreamContext) -> None:
    """The streams, with every consumer's `ack_wait` short: a killed service's messages come again soon."""
    async for _ in declare(js, Limits(ack_wait_s=ACK_WAIT_S)):
        pass
    for consumer in CONSUMERS:
        present = (await js.consumer_info(consumer.stream, consumer.name)).config
        await js.add_consumer(consumer.stream, present.evolve(ack_wait=ACK_WAIT_S))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def make_world(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[MakeWorld]:
    """Make platforms; nothing of them is left after the module."""
    async with AsyncExitStack() as stack:

        async def make(
            *tables: str,
            delay_ms: int = DELAY_MS,
            postgres: PostgresServer | None = None,
            sync: str = "2m",
            nats_disk: Path | None = None,
        ) -> World:
            home = tmp_path_factory.mktemp("world")
            seeds = new_seeds()
            directory = (nats_disk or home) / "nats"
            text = config(directory / "jetstream", seeds, sync_interval=sync)
            if nats_disk is not None:
                # Streams reserve more than a small disk has.
                text = text.replace("sync_interval", "max_file_store: 64GB, sync_interval", 1)
            guarded = Guarded(nats := NatsServer(directory, config=text), seeds)
            stack.push_async_callback(nats.kill)
            await nats.start()
            database = await clone(postgres or postgres_server)
            if postgres is None:
                stack.push_async_callback(drop, database)
            chat = await stack.enter_async_context(ChatServer(turns(Say())))
            effects = EffectsServer(home / "effects.txt", delay_ms=delay_ms)
            stack.callback(effects.kill)
            await effects.start()
            bus = await Bus.connect(guarded.settings(ADMIN), service="test", exit_when_closed=False)
            stack.push_async_callback(bus.close)
            await declare_quick(bus.js)
            stack.callback(_nobody_was_refused, guarded)
            fleet = await equip(Fleet(nats.url, home, seeds=seeds), database, chat, effects, *tables)
            stack.push_async_callback(fleet.stop)
            world = World(nats, database, fleet, chat, effects, bus)
            chat.script = world.script
            await world.watch()
            return world

        yield make


def _nobody_was_refused(guarded: Guarded) -> None:
    """But for answers: a server that was killed has forgotten who had asked, and whoever had asks again."""
    assert [said for said in guarded.refusals() if '"_INBOX' not in said and '"_R_.' not in said] == []


async def equip(fleet: Fleet, database: Database, chat: ChatServer, effects: EffectsServer, *more: str) -> Fleet:
    """Tables, addresses and short waits for every service of a platform."""
    await fleet.migrate(database, "router", "tool_registry", *more)
    fleet.set("executor", WAYLINE_CHAT_BASE_URL=chat.url, WAYLINE_EXECUTOR_TOOL_WAIT_S=2)
    fleet.set(
        "tool_registry",
        WAYLINE_TOOL_REGISTRY_SERVERS=[effects.settings()],
        WAYLINE_TOOL_REGISTRY_LEASE_S=LEASE_S,
        WAYLINE_TOOL_REGISTRY_ANSWER_WITHIN_S=1,
        WAYLINE_TOOL_REGISTRY_RECONNECT_WAIT_MAX_S=0.3,
        # A frozen server is frozen for us, not for the registry to give up.
        WAYLINE_TOOL_REGISTRY_PROBE_EVERY_S=600,
    )
    return fleet
