"""A bus and a database of our own for the benches of tools, as a service has them in production."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from wayline.chassis.stream_limits import Limits
from wayline.embedded import NatsServer, PostgresServer
from wayline.testkit import Platform
from wayline.testkit.databases import clone, make_template
from wayline.testkit.guarded import Guarded, config, identity_seeds


@asynccontextmanager
async def tool_platform(home: Path, *, limits: Limits | None = None) -> AsyncIterator[Platform]:
    """Start the servers under a directory, and end them; no service of ours runs yet, streams need `limits`."""
    async with AsyncExitStack() as stack:
        seeds = identity_seeds()
        nats = NatsServer(home / "nats", config=config(home / "js", seeds))
        await nats.start()
        stack.push_async_callback(nats.stop)
        postgres = PostgresServer(home / "postgres", settings={"fsync": "off"})
        await postgres.start()
        stack.push_async_callback(postgres.stop)
        await make_template(postgres)
        guarded = Guarded(nats, seeds)
        yield await stack.enter_async_context(Platform.open(guarded, await clone(postgres), limits=limits))
