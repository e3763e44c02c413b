"""Let a hostile tenant's case run against a registry in which another tenant is at work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from wayline.chassis import Bus
from wayline.contracts import ids
from wayline.contracts.errors import Retry
from wayline.contracts.mcp_servers import DeleteServer, GetServer, PutServer, ServerDeleted, ServerView, State
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.tools import CallTool, ListTools, ToolList, ToolReply
from wayline.testkit import until

SETTLED_WITHIN_S = 60.0
SERVER = "evil"


@dataclass
class Victim:
    """Another tenant that calls a tool with an effect, one call after the other."""

    bus: Bus
    tenant: str
    tool: str
    unknown: int = 0
    failed: int = 0
    calls: int = 0

    async def call(self) -> str:
        """Make one call, note whether its outcome is known, and return it."""
        self.calls += 1
        ask = call_of(self.tenant, self.tool, {"amount": 1}, job=f"v{self.calls}")
        reply = await ask_until_known(self.bus, ask)
        self.unknown += reply.status == "unknown"
        self.failed += reply.status == "failed"
        return reply.status

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Call without a pause."""

        async def work() -> None:
            while True:
                await self.call()

        task = asyncio.create_task(work(), name="the other tenant")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def percentile(values: list[float], share: float) -> float:
    """Return the value below which a share of some lie; of none 0."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def call_of(tenant: str, tool: str, arguments: dict[str, Any], *, job: str) -> CallTool:
    """Return a call as an executor asks for it."""
    key = ids.tool_key(tenant, job, 1, "1")
    deadline = datetime.now(UTC) + timedelta(seconds=60)
    return CallTool(
        tenant=tenant, key=key, job_id=job, step=1, call="1", tool=tool, arguments=arguments, deadline=deadline
    )


async def ask_until_known(bus: Bus, ask: CallTool) -> ToolReply:
    """Ask as the executor does: again with the same key until there is an outcome."""
    while True:
        try:
            reply = await bus.ask(ask, ToolReply, timeout_s=10)
        except Retry:
            continue
        if reply.status != "in_progress":
            return reply


async def outcome(bus: Bus, tenant: str, config: ServerConfig, arguments: dict[str, Any], *, job: str) -> str:
    """Save a hostile server, call its tool `act`, remove the server, and return what came of it."""
    await bus.ask(PutServer(tenant=tenant, name=SERVER, config=config), ServerView)
    try:
        state = await _settled(bus, tenant)
        listed = await bus.ask(ListTools(tenant=tenant, patterns=(f"{SERVER}__act",)), ToolList, timeout_s=10)
        if not listed.tools:
            return "left out" if state is State.CONNECTED else "away"
        reply = await ask_until_known(bus, call_of(tenant, f"{SERVER}__act", arguments, job=job))
        return reply.error.code if reply.error else reply.status
    finally:
        await bus.ask(DeleteServer(tenant=tenant, name=SERVER), ServerDeleted)


async def _settled(bus: Bus, tenant: str) -> State:
    """Wait until a server was reached or could not be."""
    view: ServerView | None = None

    async def tried() -> bool:
        nonlocal view
        try:
            view = await bus.ask(GetServer(tenant=tenant, name=SERVER), ServerView, timeout_s=10)
        except Retry:
            return False
        return view.state is not State.CONNECTING

    await until(tried, within=SETTLED_WITHIN_S, why="the hostile server was tried")
    assert view is not None
    return view.state
