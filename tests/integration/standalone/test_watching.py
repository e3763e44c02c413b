"""The embedded bus is watched from the moment that `up` is ready, whatever its own connection waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from wayline.chassis.tasks import stopped
from wayline.embedded import NatsServer, minimal_config
from wayline.standalone import migrating
from wayline.standalone.launch.up import _Up
from wayline.testkit import until


async def test_a_bus_that_dies_before_anybody_connects_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    @asynccontextmanager
    async def connecting_for_ever(_: object) -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(migrating, "connected_admin", connecting_for_ever)
    server = NatsServer(tmp_path / "nats", config=minimal_config(tmp_path / "js"))
    await server.start()
    await server.kill()
    printed: list[str] = []
    up = SimpleNamespace(_servers=[server], _teller=SimpleNamespace(say=printed.append), _fleet=None)

    watching = asyncio.create_task(_Up._watch(cast("Any", up), cast("Any", None)))
    try:
        await until(lambda: any("is back" in line for line in printed), why="the bus is started again")
        assert server.running
    finally:
        await stopped(watching)
        await server.kill()
