"""Everything that runs while we measure: a bus and a database of our own, and one process a service."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from wayline.chassis import Bus, BusSettings
from wayline.chassis.declare import declare
from wayline.chassis.stream_limits import Limits
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.embedded import NatsServer, PostgresServer, free_port
from wayline.embedded.nats import minimal_config
from wayline.testkit import Database
from wayline.testkit.databases import SCHEMAS, migrate_service

from . import floor
from .cost import tree_cpu_ms, tree_rss_mb

HERE = Path(__file__).parent
SERVICES = ("router", "executor", "tool_registry", "tracing", "gateway", "retrieval", "notifier")
AGENT = "bench"
STEPS_MAX = 16
INSTRUCTIONS = "You answer in one sentence."
ACK_WAIT_S = 5.0
SLOTS = 2_048
"""Enough for every measure, the same for both: the search for the most jobs in flight must not end at a setting."""
READY_WITHIN_S = 60.0


@dataclass
class Process:
    """A child of ours, ended by its own id."""

    name: str
    child: asyncio.subprocess.Process
    boot_s: float = 0.0

    @property
    def pid(self) -> int:
        return self.child.pid

    async def stop(self) -> None:
        await self._end(signal.SIGTERM, within_s=10)

    async def kill(self) -> None:
        await self._end(signal.SIGKILL, within_s=10)

    async def _end(self, how: signal.Signals, *, within_s: float) -> None:
        if self.child.returncode is not None:
            return
        self.child.send_signal(how)
        try:
            await asyncio.wait_for(self.child.wait(), within_s)
        except TimeoutError:
            self.child.kill()
            await self.child.wait()


@dataclass
class BenchPlatform:
    """What a measure works on: servers that write to disk, and services as in production."""

    root: Path
    stack: AsyncExitStack
    nats: NatsServer
    postgres: PostgresServer
    dsns: dict[str, str]
    """The addresses of the database for each service's role."""
    bus: Bus
    model_url: str
    processes: dict[str, Process] = field(default_factory=dict)

    async def start(self, service: str, *, name: str | None = None) -> Process:
        """Run a service as in production, and wait until it says that it is ready."""
        port = free_port()
        env = {
            "WAYLINE_NATS_URL": self.nats.url,
            "WAYLINE_HEALTH_PORT": str(port),
            "WAYLINE_HTTP_PORT": str(free_port()),
            "WAYLINE_CHAT_BASE_URL": self.model_url,
            "WAYLINE_EXECUTOR_INTERACTIVE_SLOTS": str(SLOTS),
        }
        if service in self.dsns:
            env["WAYLINE_POSTGRES_DSN"] = self.dsns[service]
        started = time.perf_counter()
        process = await self.spawn(name or service, ["-m", f"wayline.{service}"], env)
        await _ready(process, port)
        process.boot_s = time.perf_counter() - started
        return process

    async def start_floor(self) -> Process:
        return await self.spawn("floor", [str(HERE / "floor.py"), self.nats.url, self.model_url, str(SLOTS)])

    async def spawn(self, name: str, argv: list[str], env: dict[str, str] | None = None) -> Process:
        log = (self.root / f"{name}.log").open("ab")
        child = await asyncio.create_subprocess_exec(
            sys.executable, *argv, env={**os.environ, **(env or {})}, stdout=log, stderr=log, stdin=-3
        )
        log.close()
        process = self.processes[name] = Process(name, child)
        self.stack.push_async_callback(process.stop)
        return process

    async def restart(self, name: str) -> Process:
        await self.processes[name].stop()
        return await (self.start_floor() if name == "floor" else self.start(name))

    def cpu_ms(self) -> dict[str, float]:
        """CPU time so far, by process; Postgres is all its backends together."""
        pids = {name: process.pid for name, process in self.processes.items() if process.child.returncode is None}
        pids |= {"nats": self.nats.pid, "postgres": self.postgres.pid}
        return {name: tree_cpu_ms(pid) for name, pid in pids.items()}

    def rss_mb(self, name: str) -> float:
        pid = {"nats": self.nats, "postgres": self.postgres}.get(name, self.processes.get(name))
        assert pid is not None
        return tree_rss_mb(pid.pid)


async def set_up(root: Path, stack: AsyncExitStack) -> BenchPlatform:
    """Servers with fsync on, migrated; the model server; nothing of ours runs yet."""
    config = minimal_config(root / "nats" / "jetstream", sync_interval="always")
    bus_server = await stack.enter_async_context(NatsServer(root / "nats", config=config))
    postgres = await stack.enter_async_context(PostgresServer(root / "postgres"))
    database = Database("postgres", postgres)
    dsns = {service: await migrate_service(database, service) for service in SCHEMAS}
    bus = await Bus.connect(BusSettings(nats_url=bus_server.url), service="bench", exit_when_closed=False)
    stack.push_async_callback(bus.close)
    async for _ in declare(bus.js, Limits(ack_wait_s=ACK_WAIT_S)):
        pass
    await floor.declare(bus.js)
    port = free_port()
    platform = BenchPlatform(root, stack, bus_server, postgres, dsns, bus, f"http://127.0.0.1:{port}/v1")
    await platform.spawn("model server", [str(HERE / "model_server.py"), str(port)])
    return platform


async def start_all(platform: BenchPlatform, *, services: Sequence[str] = SERVICES) -> None:
    """Start services one after the other, so that each boot time is its own, and the floor; store the agent."""
    for service in services:
        await platform.start(service)
    await platform.start_floor()
    config = AgentConfig(instructions=INSTRUCTIONS, tools=("get_current_time",), max_steps=STEPS_MAX, adapt_steps=False)
    await platform.bus.ask(PutAgent(tenant="default", name=AGENT, config=config), Agent)


async def _ready(process: Process, port: int) -> None:
    deadline = time.perf_counter() + READY_WITHIN_S
    while process.child.returncode is None and time.perf_counter() < deadline:
        try:
            if await get(port, "/health/ready") == 200:
                return
        except OSError:
            pass
        await asyncio.sleep(0.01)
    raise SystemExit(f"{process.name} does not become ready; see its log")


async def get(port: int, path: str) -> int:
    """The status of one HTTP request; raises OSError while nobody listens."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        words = (await reader.readline()).split()
        return int(words[1]) if len(words) > 1 else 0
    finally:
        writer.close()
