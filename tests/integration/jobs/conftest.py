"""The platform in one process, on a real bus and a real database: each test names the services it needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest

from wayline.chassis import Bus, BusSettings, Service
from wayline.chassis.topology import Limits, declare
from wayline.contracts.events import Event
from wayline.contracts.jobs import TERMINAL, JobView, SubmitJob
from wayline.journal import Job, JobLog, fold, follow, view
from wayline.store import migrate
from wayline.testkit import Database, until

SCHEMAS = {
    "router": "router",
    "tool_registry": "tools",
    "retrieval": "retrieval",
    "tracing": "tracing",
    "gateway": "gateway",
}
PASSWORD = "test"


@dataclass
class Platform:
    """Services that a test has started, and a bus to talk to them by."""

    url: str
    database: Database
    bus: Bus
    _stack: AsyncExitStack
    services: dict[str, Service] = field(default_factory=dict)

    async def start(self, *names: str, **settings: Any) -> None:
        """Start services by name; `settings` are by service name."""
        for name in names:
            app = import_module(f"wayline.{name}.app")
            dsn = None
            if name in SCHEMAS:
                schema, role = SCHEMAS[name], f"wayline_{name}"
                await migrate(
                    self.database.dsn,
                    schema=schema,
                    role=role,
                    password=PASSWORD,
                    directory=app.migrations(),
                    vector=name == "retrieval",
                )
                dsn = self.database.as_role(role, PASSWORD)
            shared = BusSettings(nats_url=self.url, postgres_dsn=dsn, drain_grace_s=5)
            service = await app.build(settings.get(name), bus_settings=shared)
            await service.start()
            self.services[name] = service

    async def stop(self, name: str, grace_s: float | None = None) -> None:
        await self.services.pop(name).stop(grace_s)

    async def submit(self, job: SubmitJob, **headers: str) -> str:
        """Publish a job as any client would; returns its id."""
        assert job.job_id is not None
        await self.bus.js.publish(job.subject, job.to_wire(), headers=headers or None)
        return job.job_id

    async def job(self, job_id: str, tenant: str = "default") -> Job:
        return fold([event async for event in JobLog(self.bus, tenant, job_id).read()])

    async def events(self, job_id: str, tenant: str = "default") -> list[Event]:
        return [event async for event in JobLog(self.bus, tenant, job_id).read()]

    async def wait_for(self, job_id: str, tenant: str = "default", within: float = 20.0) -> JobView:
        """Wait for a job's end by following its log."""
        async with asyncio.timeout(within):
            async for _ in follow(self.bus, tenant, job_id):
                pass
        ended = view(await self.job(job_id, tenant))
        assert ended.status in TERMINAL
        return ended

    async def wait_until(self, job_id: str, test: Callable[[Job], bool], why: str) -> Job:
        """Wait until a job's state passes a test."""
        found: list[Job] = []

        async def passes() -> bool:
            found[:] = [await self.job(job_id)]
            return test(found[0])

        await until(passes, within=20, why=why)
        return found[0]


Started = Callable[..., Awaitable[Platform]]


@pytest.fixture
async def platform(nats_factory: Any, database: Database) -> AsyncIterator[Platform]:
    server = await nats_factory()
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)
    async for _ in declare(bus.js, Limits(ack_wait_s=1.0, memory=True)):
        pass
    async with AsyncExitStack() as stack:
        platform = Platform(server.url, database, bus, stack)
        yield platform
        for name in list(platform.services):
            await platform.stop(name, 0.1)
        await bus.close()
