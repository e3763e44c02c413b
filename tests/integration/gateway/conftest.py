"""A gateway on a real bus and database, listening on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wayline.chassis import Bus, Service, topology
from wayline.gateway.adapters.http_server import HttpServer
from wayline.gateway.app import SCHEMA, build, migrations
from wayline.gateway.settings import Settings
from wayline.store import Store, migrate
from wayline.testkit import Database
from wayline.testkit.guarded import ADMIN, Guarded

from .others import Others

SUBMIT_MAX = 5
"""Submissions of one tenant that the bus holds here."""


@dataclass
class Running:
    """A gateway that answers, and a client that talks to it."""

    service: Service
    client: httpx2.AsyncClient
    spans: InMemorySpanExporter

    @property
    def bus(self) -> Bus:
        return self.service.bus

    @property
    def url(self) -> str:
        return str(self.client.base_url)

    async def stop(self) -> None:
        await self.client.aclose()
        await self.service.stop(5)


@dataclass
class World:
    """The servers a gateway needs, and everything that runs against them."""

    nats: Guarded
    dsn: str
    running: list[Running] = field(default_factory=list)

    async def gateway(self, **settings: Any) -> Running:
        """Start a gateway on a free port."""
        service = await build(
            Settings(**{"http_port": 0, **settings}),
            bus_settings=self.nats.settings("gateway", postgres_dsn=self.dsn),
        )
        spans = InMemorySpanExporter()
        service.telemetry.add_processor(SimpleSpanProcessor(spans))
        try:
            await service.start()
        except BaseException:
            await service.stop(0)
            raise
        part = service.parts[0]
        assert isinstance(part, HttpServer)
        started = Running(service, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{part.port}", timeout=30), spans)
        self.running.append(started)
        return started

    async def store(self) -> Store:
        """The gateway's own tables."""
        return await Store.connect(self.dsn, schema=SCHEMA, queries=migrations().parent / "queries.sql")


@pytest.fixture
async def nats(guarded_nats: Guarded) -> Guarded:
    """A bus of the test's own with every stream."""
    bus = await Bus.connect(guarded_nats.settings(ADMIN), service="migrate", exit_when_closed=False)
    async for _ in topology.declare(bus.js, topology.Limits(submit_max_per_tenant=SUBMIT_MAX, memory=True)):
        pass
    await bus.close()
    return guarded_nats


@pytest.fixture
async def world(nats: Guarded, database: Database) -> AsyncIterator[World]:
    await migrate(database.dsn, schema=SCHEMA, role="wayline_gateway", password="secret", directory=migrations())
    world = World(nats, database.as_role("wayline_gateway", "secret"))
    yield world
    async with AsyncExitStack() as ends:
        for running in world.running:
            ends.push_async_callback(running.stop)


@pytest.fixture
async def gateway(world: World) -> Running:
    """One gateway without API keys, on the loopback interface."""
    return await world.gateway()


@pytest.fixture
async def bus(nats: Guarded) -> AsyncIterator[Bus]:
    """The bus as the other services see it."""
    bus = await Bus.connect(nats.settings(ADMIN), service="others", exit_when_closed=False)
    yield bus
    await bus.close()


@pytest.fixture
async def others(bus: Bus, nats: Guarded) -> AsyncIterator[Others]:
    """The services behind the gateway; they answer what the test tells them to."""
    others = Others(bus, nats)
    yield others
    await others.stop()
