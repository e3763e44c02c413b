"""A gateway on a real bus and database, listening on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wayline.chassis import Bus, Service
from wayline.chassis.stream_limits import Limits
from wayline.gateway.settings import Settings
from wayline.testkit import Database, Platform
from wayline.testkit.guarded import Guarded

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


async def start_gateway(platform: Platform, **settings: Any) -> Running:
    """Start a gateway on a free port, and connect to it."""
    service = await platform.start("gateway", gateway=Settings(**{"http_port": 0, **settings}))
    spans = InMemorySpanExporter()
    service.telemetry.add_processor(SimpleSpanProcessor(spans))
    return Running(service, await platform.http(timeout_s=30), spans)


@pytest.fixture
async def platform(guarded_nats: Guarded, database: Database) -> AsyncIterator[Platform]:
    limits = Limits(submit_max_per_tenant=SUBMIT_MAX, memory=True)
    async with Platform.open(guarded_nats, database, limits=limits) as platform:
        yield platform


@pytest.fixture
async def gateway(platform: Platform) -> Running:
    """One gateway without API keys, on the loopback interface."""
    return await start_gateway(platform)


@pytest.fixture
async def bus(platform: Platform) -> Bus:
    """The bus as the other services see it."""
    return platform.bus


@pytest.fixture
async def others(platform: Platform) -> AsyncIterator[Others]:
    """The services behind the gateway; they answer what the test tells them to."""
    others = Others(platform.bus, platform.nats)
    yield others
    await others.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_gateway(module_platform: Platform) -> Running:
    """One gateway without API keys for all tests of a file: they store nothing that another of them counts."""
    return await start_gateway(module_platform)


@pytest_asyncio.fixture(loop_scope="module")
async def shared_others(module_platform: Platform) -> AsyncIterator[Others]:
    """The services behind the shared gateway, as far as this test answers for them."""
    others = Others(module_platform.bus, module_platform.nats)
    yield others
    await others.stop()
