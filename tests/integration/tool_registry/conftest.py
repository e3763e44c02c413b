"""Registries on a real bus and ledger, as services in this process or as processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest
import pytest_asyncio
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wayline.chassis import Failpoint, Service
from wayline.contracts import ids
from wayline.contracts.errors import Retry
from wayline.contracts.mcp_servers import DeleteServer, ListServers, ServerDeleted, ServerList
from wayline.contracts.tools import CallTool, CancelTool, ListTools, ResolveTool, ToolList, ToolReply, VoidTool
from wayline.store import Record, Store
from wayline.testkit import Database, Platform, until
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.fixtures import run
from wayline.testkit.guarded import Guarded
from wayline.testkit.processes import ServiceProcess
from wayline.testkit.service_starts import start_service
from wayline.tool_registry.settings import Settings

LEASE_S = 0.9
ASKED_AGAIN_MAX = 200


@dataclass
class Registry:
    """A registry in this process."""

    service: Service
    spans: InMemorySpanExporter

    async def stop(self, grace_s: float = 5) -> None:
        await self.service.stop(grace_s)


class RegistryPlatform(Platform):
    """A platform for registries: one ledger, the tools' servers, and what an executor asks."""

    dsn: str
    ledger: Store
    """The tables of calls."""
    effects: EffectsServer
    """Shared by the session: not to be killed. The tenant in a key says whose call it is."""
    tenant: str
    tmp_path: Path
    servers: list[EffectsServer]
    processes: list[asyncio.subprocess.Process]
    forks: list[ServiceProcess]

    def as_tenant(self) -> Self:
        """Return this platform as a tenant sees it that no other test has."""
        seen = copy(self)
        seen.tenant = new_tenant()
        return seen

    async def delete_servers(self) -> None:
        """Delete the servers that the tenant has saved: nothing is to be tried again for them."""
        listed = await self.bus.ask(ListServers(tenant=self.tenant), ServerList)
        for server in listed.servers:
            if server.of == "tenant":
                await self.bus.ask(DeleteServer(tenant=self.tenant, name=server.name), ServerDeleted)

    def settings(self, servers: tuple[dict[str, Any], ...] | None = None, **more: Any) -> dict[str, Any]:
        return {
            "servers": [self.effects.settings()] if servers is None else list(servers),
            "lease_s": LEASE_S,
            # Long, so that a busy machine does not turn an answer into "ask again"; who tests that says so.
            "answer_within_s": 3,
            "cancel_wait_s": 0.3,
            "retry_after_s": [0.01, 0.02],
            "available_within_s": 0.5,
            "reconnect_wait_max_s": 0.3,
            "programs_dir": str(self.tmp_path / "programs"),
            "program_reads": [str(self.tmp_path)],
            **more,
        }

    async def registry(self, *servers: dict[str, Any], **settings: Any) -> Registry:
        """Start a registry here; without servers, it has the effects server."""
        chosen = Settings.model_validate(self.settings(servers or None, **settings))
        service = await self.build("tool_registry", chosen)
        spans = InMemorySpanExporter()
        service.telemetry.add_processor(SimpleSpanProcessor(spans))
        await service.start()
        self.running.append(service)
        return Registry(service, spans)

    async def process(self, failpoint: Failpoint | None = None, **settings: Any) -> asyncio.subprocess.Process:
        """Start a registry as a process with an environment of its own in /proc; it hears when this returns."""
        env = self.environment(failpoint, **settings)
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "wayline.tool_registry", env=env)
        self.processes.append(process)
        await until(self.hears, why="the registry process answers")
        return process

    async def forked(self, failpoint: Failpoint | None = None, **settings: Any) -> ServiceProcess:
        """Start a registry as a process that need not import anything; it hears when this returns."""
        env, log = self.environment(failpoint, **settings), self.tmp_path / f"registry-{len(self.forks)}.log"
        child = await asyncio.to_thread(start_service, "tool_registry", cwd=self.tmp_path, log=log, env=env)
        self.forks.append(ServiceProcess("tool_registry", log, child, failpoint))
        await until(self.hears, why="the registry process answers")
        return self.forks[-1]

    def environment(self, failpoint: Failpoint | None, **settings: Any) -> dict[str, str]:
        """Return the environment of a registry that is a process."""
        knobs = {
            f"WAYLINE_TOOL_REGISTRY_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
            for name, value in self.settings(**settings).items()
        }
        return {
            **os.environ,
            **knobs,
            "WAYLINE_NATS_URL": self.nats.url,
            "WAYLINE_NATS_SEED": self.nats.seeds["tool_registry"],
            "WAYLINE_NATS_ACCOUNTS": "true",
            "WAYLINE_POSTGRES_DSN": self.dsn,
            "WAYLINE_FAILPOINT": failpoint or "",
        }

    async def server(self, *, delay_ms: int = 200) -> EffectsServer:
        """Start an effects server of the test's own, which it may kill."""
        server = EffectsServer(self.tmp_path / f"effects-{len(self.servers)}.txt", delay_ms=delay_ms)
        self.servers.append(await server.start())
        return server

    def acted(self) -> list[tuple[str, str]]:
        """Return what the shared server's tools did in this test, as `(tool, key)`."""
        return [(tool, key) for tool, key in self.effects.calls() if key.startswith(f"{self.tenant}/")]

    def times_acted(self, tool: str) -> int:
        """Count how often a tool of the shared server acted in this test."""
        return sum(1 for acted, _ in self.acted() if acted == tool)

    async def hears(self) -> bool:
        try:
            return bool((await self.bus.ask(ListTools(tenant=self.tenant), ToolList, timeout_s=6)).tools)
        except Retry:
            return False

    def ask(self, tool: str, arguments: dict[str, Any] | None = None, *, job: str = "j1", **more: Any) -> CallTool:
        """Return a call as the executor asks for it."""
        step, call = more.pop("step", 1), more.pop("call", "1")
        values = {
            "tenant": self.tenant,
            "key": ids.tool_key(self.tenant, job, step, call),
            "job_id": job,
            "step": step,
            "call": call,
            "tool": tool,
            "arguments": arguments or {},
            "deadline": datetime.now(UTC) + timedelta(seconds=60),
        }
        return CallTool(**{**values, **more})

    async def once(self, ask: CallTool, *, timeout_s: float = 10) -> ToolReply:
        """Ask and take the answer, whatever it is."""
        return await self.bus.ask(ask, ToolReply, timeout_s=timeout_s)

    async def call(self, ask: CallTool) -> ToolReply:
        """Ask as the executor does: again with the same key until there is an outcome."""
        for _ in range(ASKED_AGAIN_MAX):
            try:
                reply = await self.once(ask, timeout_s=2)
            except Retry:
                await asyncio.sleep(0.05)
                continue
            if reply.status != "in_progress":
                return reply
        raise AssertionError(f"{ask.key} is still in progress after {ASKED_AGAIN_MAX} questions")

    async def cancel(self, key: str) -> None:
        await self.bus.send(CancelTool(tenant=self.tenant, key=key))

    async def resolve(self, key: str, outcome: str, content: str = "") -> ToolReply:
        values: dict[str, Any] = {"tenant": self.tenant, "key": key, "outcome": outcome, "content": content}
        return await self.bus.ask(ResolveTool(**values), ToolReply)

    async def void(self, ask: CallTool) -> ToolReply:
        """Have a call ended for good, as the executor does when its job ends."""
        values = ask.model_dump(exclude={"user_id"})
        return await self.bus.ask(VoidTool(tenant=ask.tenant, **values), ToolReply, timeout_s=10)

    async def row(self, key: str) -> Record | None:
        """Return the ledger's row as it is."""
        return await self.ledger.fetchrow(self.tenant, "SELECT * FROM calls WHERE key = $1", key)

    async def until_state(self, key: str, state: str) -> None:
        async def is_so() -> bool:
            row = await self.row(key)
            return row is not None and row["state"] == state

        await until(is_so, why=f"{key} is {state}")


@pytest.fixture(scope="session")
def effects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EffectsServer]:
    server = EffectsServer(tmp_path_factory.mktemp("effects") / "effects.txt", delay_ms=200)
    run(server.start())
    yield server
    server.kill()


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """Return the test's directory, from which isolated programs read as users of their tenants."""
    tmp_path.chmod(0o755)
    return tmp_path


@pytest.fixture
async def platform(
    guarded_nats: Guarded, database: Database, effects: EffectsServer, open_path: Path
) -> AsyncIterator[RegistryPlatform]:
    async with open_platform(guarded_nats, database, effects, open_path) as platform:
        yield platform


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_platform(
    module_servers: tuple[Guarded, Database], effects: EffectsServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RegistryPlatform]:
    """Make a platform for all tests of a file."""
    directory = tmp_path_factory.mktemp("registry")
    directory.chmod(0o755)
    async with open_platform(*module_servers, effects, directory) as platform:
        yield platform


@pytest_asyncio.fixture(loop_scope="module")
async def shared(shared_registry: RegistryPlatform) -> AsyncIterator[RegistryPlatform]:
    """The platform and its registry that a file's tests share, as a tenant of the test's own sees them."""
    seen = shared_registry.as_tenant()
    yield seen
    await seen.delete_servers()


def new_tenant() -> str:
    return f"t-{secrets.token_hex(4)}"


@asynccontextmanager
async def open_platform(
    nats: Guarded, database: Database, effects: EffectsServer, directory: Path
) -> AsyncIterator[RegistryPlatform]:
    """Open a platform with the tables of calls; at the end nothing is left of what was started."""
    async with RegistryPlatform.open(nats, database, limits=None) as platform:
        platform.dsn = await platform.migrate("tool_registry")
        platform.ledger = await platform.store("tool_registry", max_size=10)
        platform.effects, platform.tenant, platform.tmp_path = effects, new_tenant(), directory
        platform.servers, platform.processes, platform.forks = [], [], []
        yield platform
        for process in platform.processes:
            if process.returncode is None:
                process.kill()
                await process.wait()
        for fork in platform.forks:
            fork.kill()
            await fork.ended()
        for server in platform.servers:
            server.kill()
