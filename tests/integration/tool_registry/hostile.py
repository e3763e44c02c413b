"""A registry with a tenant's program that misbehaves and one that does not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from wayline.contracts.mcp_servers import (
    ApproveDefinitions,
    GetServer,
    PutServer,
    ServerReport,
    ServerView,
    State,
    TryServer,
)
from wayline.contracts.server_config import ServerConfig, ToolSettings
from wayline.contracts.tools import Effect, ToolReply
from wayline.testkit import until

PROGRAM = Path(__file__).with_name("hostile_program.py")
UNCONFINED: dict[str, Any] = {"commands": [sys.executable], "programs": "unconfined"}
"""For tests that look at processes: those of an isolated program have other ids, and write to no file of ours."""
QUICKLY: dict[str, Any] = {"connect_timeout_s": 5, "probe_every_s": 0.2, "reconnect_wait_max_s": 0.1}


class Hostile:
    """A tenant's misbehaving program beside a healthy one, each with the ids of its processes."""

    def __init__(self, platform, mode: str) -> None:
        self._platform = platform
        self._mode = mode

    async def start(self, **settings: Any) -> None:
        """Start a registry and save both programs."""
        allowed = {**UNCONFINED, **QUICKLY, **settings}
        self.registry = await self._platform.registry(self._platform.effects.settings(), **allowed)
        await self.save("good", "good")
        await self.save("bad", self._mode)
        await self.connected("good")
        # On a busy machine its first start may have been given up.
        self._healthy = self.pids("good")

    async def save(self, name: str, mode: str) -> None:
        put = PutServer(tenant=self._platform.tenant, name=name, config=self._config(name, mode))
        await self._platform.bus.ask(put, ServerView)

    async def tried(self, name: str, mode: str, *, tenant: str | None = None) -> ServerReport:
        """Return what trying a program that is not saved reports."""
        ask = TryServer(tenant=tenant or self._platform.tenant, config=self._config(name, mode))
        return await self._platform.bus.ask(ask, ServerReport, timeout_s=30)

    async def view(self, name: str) -> ServerView:
        return await self._platform.bus.ask(GetServer(tenant=self._platform.tenant, name=name), ServerView)

    async def approve(self) -> None:
        """Approve what the bad program has changed."""
        hashes = tuple(change.sha256 for change in (await self.view("bad")).changes)
        ask = ApproveDefinitions(tenant=self._platform.tenant, name="bad", sha256=hashes)
        await self._platform.bus.ask(ask, ServerView)

    async def connected(self, name: str) -> None:
        async def is_connected() -> bool:
            return (await self.view(name)).state is State.CONNECTED

        await until(is_connected, why=f"{name} is connected")

    async def call(self, tool: str, job: str = "j1", **more: Any) -> ToolReply:
        return await self._platform.call(self._platform.ask(tool, job=job, **more))

    def pids(self, name: str) -> list[int]:
        """Return the ids of all processes that a program ever had."""
        file = self._file(name)
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def begun(self, name: str) -> list[str]:
        """Return the tools whose calls have reached a program that hangs in them."""
        file = self._file(name).with_suffix(".calls")
        return file.read_text().split() if file.exists() else []

    async def gone(self, name: str) -> None:
        """Wait until none of a program's processes is left."""
        await until(lambda: not any(map(is_alive, self.pids(name))), why=f"no process of {name} is left")

    async def works_again(self) -> None:
        """Wait until the misbehaving program was started anew and answers."""
        tried: list[ToolReply] = []

        async def answers() -> bool:
            tried.append(await self.call("bad__look", job=f"again-{len(tried)}"))
            return tried[-1].status == "success"

        await until(answers, why="the program runs again")

    async def neighbour_is_untouched(self) -> None:
        """Check that the healthy program is the process that it was, and nothing is left of either at the end."""
        reply = await self.call("good__look", job="neighbour")
        assert int(reply.content) == self._healthy[-1]
        assert self.pids("good") == self._healthy
        await self.registry.stop()
        await self.gone("good")
        await self.gone("bad")

    def _config(self, name: str, mode: str) -> ServerConfig:
        return ServerConfig(
            command=sys.executable,
            args=(str(PROGRAM), mode, str(self._file(name))),
            effects={"act": Effect.READ, "look": Effect.READ},
            tools={"act": ToolSettings(timeout_s=0.5 if mode == "hang" else None)},
        )

    def _file(self, name: str) -> Path:
        return self._platform.tmp_path / f"{name}.pids"


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
