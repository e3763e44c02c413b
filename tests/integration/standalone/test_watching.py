"""The embedded bus is watched from the moment that `up` is ready, whatever its own connection waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from wayline.chassis import Bus
from wayline.chassis.concurrency.awaited_tasks import stopped
from wayline.embedded import NatsServer, minimal_config
from wayline.standalone.servers.watch import keep_running
from wayline.testkit import until


async def test_a_bus_that_dies_before_anybody_connects_is_started_again(tmp_path: Path):
    @asynccontextmanager
    async def connect_for_ever() -> AsyncIterator[Bus]:
        await asyncio.Event().wait()
        raise AssertionError
        yield

    server = NatsServer(tmp_path / "nats", config=minimal_config(tmp_path / "js"))
    await server.start()
    await server.kill()
    printed: list[str] = []

    watching = asyncio.create_task(
        keep_running([server], connect=connect_for_ever, stuck=lambda: None, print_line=printed.append)
    )
    try:
        await until(lambda: any("is back" in line for line in printed), why="the bus is started again")
        assert server.running
    finally:
        await stopped(watching)
        await server.kill()
