"""The platform in one process, on a real bus with its identities and a real database: a test names its services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import asyncpg
import nats
import orjson
import pytest
from nats.aio.client import Client

from wayline.chassis import Bus, Service
from wayline.chassis.topology import Limits, declare
from wayline.contracts.errors import WaylineError
from wayline.contracts.events import Event
from wayline.contracts.jobs import TERMINAL, JobView
from wayline.contracts.knowledge import Document, GetDocument, IndexDocument
from wayline.executor.prompt.notes import Notes, silent
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.gateway.server import HttpServer
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.journal import Job, JobLog, fold, follow, view
from wayline.simulator.chat_server import ChatServer
from wayline.store import migrate
from wayline.testkit import Database, until
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.guarded import ADMIN, Guarded
from wayline.tool_registry.settings import Settings as RegistrySettings

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

    nats: Guarded
    database: Database
    bus: Bus
    client: Client
    """Whoever connects without credentials: tenant `default` alone."""
    _stack: AsyncExitStack
    services: dict[str, Service] = field(default_factory=dict)

    async def know(self, document_id: str, name: str, text: str) -> None:
        """Index a document and wait until it can be found."""
        document = IndexDocument(tenant="default", document_id=document_id, name=name, text=text)
        await self.bus.publish(document, msg_id=document_id)

        async def ready() -> bool:
            try:
                known = await self.bus.ask(GetDocument(tenant="default", document_id=document_id), Document)
            except WaylineError:
                return False
            return known.status == "ready"

        await until(ready, within=20, why="the document is indexed")

    async def start(self, *names: str, notes: Notes = silent, **settings: Any) -> None:
        """Start services by name; `settings` are by service name, `notes` is what the executor tells its jobs."""
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
            shared = self.nats.settings(name, postgres_dsn=dsn)
            more = {"notes": notes} if name == "executor" else {}
            given = settings.get(name) or (GatewaySettings(http_port=0) if name == "gateway" else None)
            service = await app.build(given, bus_settings=shared, **more)
            await service.start()
            self.services[name] = service

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[asyncpg.Connection]:
        """The database as its owner."""
        conn = await asyncpg.connect(self.database.dsn)
        try:
            yield conn
        finally:
            await conn.close()

    async def stop(self, name: str, grace_s: float | None = None) -> None:
        await self.services.pop(name).stop(grace_s)

    @property
    def http_port(self) -> int:
        """Where the gateway listens."""
        return next(part.port for part in self.services["gateway"].parts if isinstance(part, HttpServer))

    async def submit(self, job_id: str, text: Any = "go", *, agent: str = "assistant", **options: Any) -> None:
        """Publish a job as any client would."""
        body = {"agent": agent, "input": text, "job_id": job_id, "options": options}
        await self.publish(body)

    async def publish(self, body: Any, headers: dict[str, str] | None = None, tenant: str = "default") -> None:
        """Publish any body on the front door: as anybody may for tenant `default`."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        door = self.client.jetstream() if tenant == "default" else self.bus.js
        await door.publish(f"jobs.submit.{tenant}", data, headers=headers)

    async def signal(self, job_id: str, **signal: Any) -> None:
        """Publish a signal as any client would."""
        await self.client.jetstream().publish(f"signals.default.{job_id}", orjson.dumps({"signal": signal}))

    async def dead(self) -> list[dict[str, str]]:
        """The headers of every dead letter, oldest first."""
        info = await self.bus.js.stream_info("DEAD")
        first, last = info.state.first_seq, info.state.last_seq
        return [dict((await self.bus.js.get_msg("DEAD", n)).headers or {}) for n in range(max(1, first), last + 1)]

    async def left(self, stream: str) -> int:
        """Messages that a stream still holds."""
        return (await self.bus.js.stream_info(stream)).state.messages

    async def drained(self, *streams: str) -> None:
        """Wait until work queues are empty: everything was acked."""
        for stream in streams:

            async def empty(stream: str = stream) -> bool:
                return await self.left(stream) == 0

            await until(empty, why=f"{stream} is empty")

    async def job(self, job_id: str, tenant: str = "default") -> Job:
        return fold([event async for event in JobLog(self.bus, tenant, job_id).read()])

    async def events(self, job_id: str, tenant: str = "default") -> list[Event]:
        return [event async for event in JobLog(self.bus, tenant, job_id).read()]

    async def wait_for(self, job_id: str, tenant: str = "default", within: float = 60.0) -> JobView:
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
async def platform(
    guarded_nats: Guarded, database: Database, request: pytest.FixtureRequest
) -> AsyncIterator[Platform]:
    bus = await Bus.connect(guarded_nats.settings(ADMIN), service="test", exit_when_closed=False)
    async for _ in declare(bus.js, getattr(request, "param", Limits(ack_wait_s=1.0, memory=True))):
        pass
    async with AsyncExitStack() as stack:
        client = await nats.connect(guarded_nats.url)
        stack.push_async_callback(client.close)
        platform = Platform(guarded_nats, database, bus, client, stack)
        yield platform
        for name in list(platform.services):
            await platform.stop(name, 0.1)
        await bus.close()


@pytest.fixture
async def effects(tmp_path: Path) -> AsyncIterator[EffectsServer]:
    """An MCP server whose effects are counted in a file; every call takes as long as the test says."""
    server = EffectsServer(tmp_path / "effects.txt")
    yield server
    server.kill()


def chatting(chat: ChatServer) -> ExecutorSettings:
    """An executor that calls a scripted provider."""
    return ExecutorSettings(chat_base_url=chat.url, tool_wait_s=2.0)


def with_tools(*servers: dict[str, Any], **more: Any) -> RegistrySettings:
    """A registry with MCP servers beside the built-in tools, and short waits."""
    return RegistrySettings.model_validate(
        {
            "servers": list(servers),
            "lease_s": 0.9,
            "answer_within_s": 0.4,
            "cancel_wait_s": 0.4,
            "retry_after_s": [0.01, 0.02],
            "available_within_s": 0.5,
            "reconnect_wait_max_s": 0.3,
            **more,
        }
    )
