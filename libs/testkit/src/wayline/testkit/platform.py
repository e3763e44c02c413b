"""The platform in this process: a real bus with its identities, a real database, and chosen services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import Any, Self, TypeVar

import asyncpg
import httpx2
import nats
import orjson
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import RawStreamMsg
from pydantic import BaseModel

from wayline.chassis import Ask, Bus, Service
from wayline.chassis.handling.responder import Responder
from wayline.chassis.stream_limits import Limits
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.events import Event
from wayline.contracts.jobs import TERMINAL, JobView
from wayline.contracts.tenants import CreateTenant, Tenant
from wayline.journal import Job, JobLog, State, fold, follow, view
from wayline.simulator import Script, Simulator, by_rules
from wayline.store import Store
from wayline.telemetry import Telemetry
from wayline.testkit.databases import SCHEMAS, Database, migrate_service
from wayline.testkit.fresh_streams import make_streams
from wayline.testkit.guarded import ADMIN, Guarded
from wayline.testkit.processes import POOL_SIZE, Fleet
from wayline.testkit.waiting import WITHIN_S, until

E = TypeVar("E", bound=Event)
S = TypeVar("S", bound=BaseModel)

QUICK = Limits(ack_wait_s=1.0, memory=True)
"""Streams in memory; the ticket of an executor that is gone comes again after a second."""
STOP_GRACE_S = 0.1


def small(settings: S) -> S:
    """Return settings with few connections to Postgres, where the test has not said how many."""
    is_ours = "pool_size" in type(settings).model_fields.keys() - settings.model_fields_set
    return settings.model_copy(update={"pool_size": POOL_SIZE}) if is_ours else settings


class Platform:
    """A bus with every stream, and what the test has started on it; all of it ends with the test.

    async with Platform.open(guarded_nats, database) as platform:
        simulator = await platform.simulate(script)
        await platform.start("router", "executor", executor=ExecutorSettings(anthropic_base_url=simulator.url))
        await platform.submit("j1", "why?")
        job = await platform.wait_for("j1")
    """

    def __init__(
        self, nats: Guarded, database: Database | None, bus: Bus, client: Client, stack: AsyncExitStack
    ) -> None:
        self.nats = nats
        self.bus = bus
        """The test's own, with the rights of the administrator."""
        self.client = client
        """A client without credentials: it may act for tenant `default` alone."""
        self.running: list[Service] = []
        self.tenant = "default"
        """Whose agents and jobs the methods below are about, where they are not told."""
        self._database = database
        self._dsns: dict[str, str] = {}
        self._stack = stack

    @classmethod
    @asynccontextmanager
    async def open(
        cls, nats_server: Guarded, database: Database | None = None, *, limits: Limits | None = QUICK
    ) -> AsyncIterator[Self]:
        """Connect and declare the streams, none where there are no limits; at the end stop all that was started."""
        async with AsyncExitStack() as stack:
            bus = await Bus.connect(nats_server.settings(ADMIN), service="test", exit_when_closed=False)
            stack.push_async_callback(bus.close)
            await make_streams(bus, limits, is_used=nats_server.is_used)
            client = await nats.connect(nats_server.url.split(","))
            stack.push_async_callback(client.close)
            platform = cls(nats_server, database, bus, client, stack)
            try:
                yield platform
            finally:
                # Before what they talk to: a service waits for its last answers.
                await platform._stop_all()

    @property
    def database(self) -> Database:
        """Return the test's database; a platform of services without tables has none."""
        assert self._database is not None, "this platform was opened without a database"
        return self._database

    async def new_tenant(self) -> Self:
        """Make a tenant that no other test has, and return this platform as it sees it; it needs a router."""
        seen = copy(self)
        seen.tenant = f"t-{token_hex(4)}"
        await self.bus.ask(CreateTenant(tenant=seen.tenant), Tenant)
        return seen

    # Services

    async def start(
        self, *names: str, build: Mapping[str, Mapping[str, Any]] | None = None, **settings: Any
    ) -> Service:
        """Start services by name and return the last.

        Settings are by service name, and so are the other arguments of their `build`.
        """
        for name in names:
            service = await self.build(name, settings.get(name), **(build or {}).get(name, {}))
            try:
                await service.start()
            except BaseException:
                await service.stop(0)
                raise
            self.running.append(service)
        return self.running[-1]

    async def build(self, name: str, settings: Any = None, **more: Any) -> Service:
        """Build a service, its tables migrated, without starting it."""
        dsn = await self.migrate(name) if name in SCHEMAS else None
        if settings is None:
            ports = {"http_port": 0} if name == "gateway" else {}
            settings = import_module(f"wayline.{name}.settings").Settings(**ports)
        app = import_module(f"wayline.{name}.app")
        return await app.build(small(settings), bus_settings=self.nats.settings(name, postgres_dsn=dsn), **more)

    @property
    def services(self) -> dict[str, Service]:
        """Return the running services by name; of several of one name, the newest."""
        return {service.name: service for service in self.running}

    async def stop(self, name: str, grace_s: float | None = None) -> None:
        """Stop the newest service of this name."""
        service = self.services[name]
        self.running.remove(service)
        await service.stop(grace_s)

    async def _stop_all(self) -> None:
        for service in self.running:
            if not service.bus.nc.is_closed:
                await service.stop(STOP_GRACE_S)

    async def make_fleet(self, directory: Path, *names: str) -> Fleet:
        """Prepare services as processes of their own, those named with their tables; they log into a directory."""
        fleet = Fleet(self.nats.url, directory, seeds=self.nats.seeds)
        self._stack.push_async_callback(fleet.stop)
        for name in names:
            fleet.set(name, WAYLINE_POSTGRES_DSN=await self.migrate(name))
        return fleet

    async def connect(self, identity: str) -> Bus:
        """Connect to the bus as another identity."""
        bus = await Bus.connect(self.nats.settings(identity), service=identity, exit_when_closed=False)
        self._stack.push_async_callback(bus.close)
        return bus

    async def answer(self, *asks: Ask[Any]) -> None:
        """Answer requests in place of a service that is not started."""
        for ask in asks:
            responder = Responder(self.bus, Telemetry("test"), ask)
            await responder.start()
            self._stack.push_async_callback(responder.stop, 0)
        await self.bus.settled()

    async def simulate(self, script: Script = by_rules, **options: Any) -> Simulator:
        """Start simulated model providers."""
        return await self._stack.enter_async_context(Simulator(script, **options))

    @property
    def http_port(self) -> int:
        """Return the port of the newest gateway."""
        return next(part.port for part in self.services["gateway"].parts if hasattr(part, "port"))  # type: ignore[attr-defined]

    async def http(self, *, timeout_s: float = 60) -> httpx2.AsyncClient:
        """Connect to the newest gateway."""
        client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self.http_port}", timeout=timeout_s)
        return await self._stack.enter_async_context(client)

    # Tables

    async def migrate(self, name: str) -> str:
        """Make a service's tables once, and return the address of the database for its role."""
        if name not in self._dsns:
            self._dsns[name] = await migrate_service(self.database, name)
        return self._dsns[name]

    async def store(self, name: str, *, max_size: int = 2) -> Store:
        """Open a service's tables as its own role."""
        queries = import_module(f"wayline.{name}.app").migrations().parent / "queries.sql"
        store = await Store.connect(await self.migrate(name), schema=SCHEMAS[name], queries=queries, max_size=max_size)
        self._stack.push_async_callback(store.close)
        return store

    @asynccontextmanager
    async def superuser(self) -> AsyncIterator[asyncpg.Connection]:
        """Connect to the database as its superuser, whom no policy binds."""
        conn = await asyncpg.connect(self.database.dsn)
        try:
            yield conn
        finally:
            await conn.close()

    # Jobs

    async def put_agent(self, name: str, config: AgentConfig | None = None, **fields: Any) -> Agent:
        """Save an agent."""
        saved = PutAgent(tenant=self.tenant, name=name, config=config or AgentConfig.model_validate(fields))
        return await self.bus.ask(saved, Agent)

    async def submit(self, job_id: str, text: Any = "go", *, agent: str = "assistant", **options: Any) -> None:
        """Publish a job as any client of the tenant would."""
        await self.publish({"agent": agent, "input": text, "job_id": job_id, "options": options})

    async def publish(self, body: Any, headers: dict[str, str] | None = None, tenant: str | None = None) -> None:
        """Publish any body as a submission: for tenant `default` without credentials."""
        encoded, tenant = body if isinstance(body, bytes) else orjson.dumps(body), tenant or self.tenant
        await self._sender(tenant).publish(f"jobs.submit.{tenant}", encoded, headers=headers)

    def _sender(self, tenant: str) -> JetStreamContext:
        return self.client.jetstream() if tenant == "default" else self.bus.js

    async def signal(self, job_id: str, signal: BaseModel | None = None, **fields: Any) -> int:
        """Publish a signal as any client would, and return its sequence."""
        body = orjson.dumps({"signal": fields if signal is None else signal.model_dump(mode="json")})
        return (await self._sender(self.tenant).publish(f"signals.{self.tenant}.{job_id}", body)).seq

    async def decide(self, job_id: str, approval_id: str, decision: str = "approve", **fields: Any) -> int:
        """Publish a decision on an approval as any client would, and return its sequence."""
        body = orjson.dumps({"approval_id": approval_id, "decision": decision, **fields})
        return (await self._sender(self.tenant).publish(f"approvals.{self.tenant}.{job_id}", body)).seq

    async def events(self, job_id: str, tenant: str | None = None) -> list[Event]:
        """Read a job's log."""
        return [event async for event in JobLog(self.bus, tenant or self.tenant, job_id).read()]

    async def events_of(self, job_id: str, kind: type[E]) -> list[E]:
        """Read the events of one type in a job's log."""
        return [event for event in await self.events(job_id) if isinstance(event, kind)]

    async def job(self, job_id: str, tenant: str | None = None) -> Job:
        """Fold a job's log."""
        return fold(await self.events(job_id, tenant))

    async def wait_for(self, job_id: str, tenant: str | None = None, within: float = WITHIN_S) -> JobView:
        """Wait for a job's end by following its log."""
        async with asyncio.timeout(within):
            async for _ in follow(self.bus, tenant or self.tenant, job_id):
                pass
        ended = view(await self.job(job_id, tenant))
        assert ended.status in TERMINAL
        return ended

    async def wait_until(self, job_id: str, test: Callable[[Job], bool], why: str) -> Job:
        """Wait until a job's state passes a test."""
        job: list[Job] = []

        async def passes() -> bool:
            job[:] = [await self.job(job_id)]
            return test(job[0])

        await until(passes, why=why)
        return job[0]

    async def wait_until_parked(self, job_id: str, within: float = WITHIN_S) -> Job:
        """Wait until a job is parked and its ticket acked: from then on only the router can wake it.

        The executor that parked it looks for signals once more before the ack, and wakes it where there is one.
        """

        async def parked() -> bool:
            head = await JobLog(self.bus, self.tenant, job_id).last()
            return head is not None and head.state is State.PARKED and await self.count("RUN") == 0

        await until(parked, within=within, why=f"{job_id} is parked and no ticket is left")
        return await self.job(job_id)

    # Streams

    async def dead_letters(self) -> list[dict[str, str]]:
        """Return the headers of every dead letter, oldest first."""
        return [dict(message.headers or {}) for message in await self.dead_letter_messages()]

    async def dead_letter_messages(self) -> list[RawStreamMsg]:
        """Return every dead letter, oldest first."""
        state = (await self.bus.js.stream_info("DEAD")).state
        stored = range(max(1, state.first_seq), state.last_seq + 1)
        return [await self.bus.js.get_msg("DEAD", number) for number in stored]

    async def count(self, stream: str) -> int:
        """Count the messages in a stream."""
        return (await self.bus.js.stream_info(stream)).state.messages

    async def wait_until_empty(self, *streams: str) -> None:
        """Wait until work queues are empty: everything was acked."""
        for stream in streams:

            async def empty(stream: str = stream) -> bool:
                return await self.count(stream) == 0

            await until(empty, why=f"{stream} is empty")
