"""An MCP server whose tools have effects that can be counted: one line in a file for each.

A tool waits the delay, appends `<tool> <key>` to the file, syncs it, and only then answers: whatever happened to the
answer, the file's lines are the effects that took place.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from wayline.embedded.process import Child
from wayline.testkit.fork_server import fork
from wayline.testkit.waiting import POLL_MIN_S, until

SERVE = "wayline.testkit.counted_effects:serve"
IMPORTS = ("mcp.server", "rich.logging", "rich.traceback", "uvicorn.protocols.http.auto", "anyio._backends._asyncio")
"""What the server imports only when it starts."""
KEY = "wayline/key"
RECONCILE = "wayline/reconcile"
COST = "wayline/cost_usd"

EFFECTS = {
    "pay_once": "once",
    "put_idempotent": "idempotent",
    "book_reconcile": "reconcile",
    "look_read": "read",
}
START_WITHIN_S = 90.0


@dataclass
class EffectsServer:
    """The server as a process of its own, for a test to start, count, kill and start again."""

    file: Path
    delay_ms: int = 0
    port: int = 0
    described_as: str = ""
    """What `pay_once` says of itself from its next start on; empty: what it always says."""
    asking: bool = False
    """Whether there is a tool `send_once` from its next start on, which asks a person from which account it sends."""
    process: Child | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def _log(self) -> Path:
        return self.file.with_name(f"{self.file.name}.log")

    def settings(self, **more: Any) -> dict[str, Any]:
        """Return this server as an entry of `WAYLINE_TOOL_REGISTRY_SERVERS`."""
        effects = EFFECTS | ({"send_once": "once"} if self.asking else {})
        return {"name": "effects", "url": self.url, "effects": effects, **more}

    async def start(self) -> Self:
        """Start it, on the same port as before if it ran already; it accepts connections when this returns."""
        self.port = self.port or _free_port()
        arguments = (str(self.file), self.port, self.delay_ms, self.described_as, self.asking)
        # Not in the test's event loop: the first to be started waits until its modules are imported.
        self.process = await asyncio.to_thread(fork, SERVE, *arguments, log=self._log, imports=IMPORTS)
        await until(self._accepts, within=START_WITHIN_S, why="the effects server accepts connections")
        return self

    def _accepts(self) -> bool:
        assert self.process is not None
        assert not self.process.exited, f"the effects server ended at its start:\n{self._log.read_text()}"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """Kill the server as a crash would."""
        if self.process is not None:
            self.process.process.send_signal(signal.SIGKILL)
            while not self.process.exited:
                time.sleep(POLL_MIN_S)

    def pause(self) -> None:
        """Freeze the server: a running tool has no effect until it is resumed."""
        assert self.process is not None
        self.process.freeze()

    def resume(self) -> None:
        """Resume the paused server."""
        assert self.process is not None
        self.process.signal_all(signal.SIGCONT)

    def forget(self) -> None:
        """Forget the effects so far: a server that several tests share begins each without those of the one before."""
        for file in self.file.parent.glob(f"{self.file.name}*"):
            if file != self._log:
                file.unlink()

    def calls(self) -> list[tuple[str, str]]:
        """Return every effect so far as `(tool, key)`, oldest first."""
        text = self.file.read_text() if self.file.exists() else ""
        return [(tool, key) for tool, _, key in (line.partition(" ") for line in text.splitlines())]

    def amounts(self) -> list[int]:
        """Return what `pay_once` has paid, oldest first."""
        paid = self.file.with_name(f"{self.file.name}.paid")
        return [int(line) for line in paid.read_text().splitlines()] if paid.exists() else []

    def has_begun(self, tool: str, key: str | None = None) -> bool:
        """Return whether a call of a tool has reached the server, the one under a key or any."""
        begun = begun_beside(self.file)
        lines = begun.read_text().splitlines() if begun.exists() else []
        return any(line == f"{tool} {key}" if key else line.startswith(f"{tool} ") for line in lines)

    def count(self, tool: str, key: str | None = None) -> int:
        """Count how often a tool acted, for one key or for all."""
        return sum(1 for called, by in self.calls() if called == tool and key in {None, by})

    def repeated(self, tool: str) -> dict[str, int]:
        """Return the keys under which a tool acted more than once."""
        counted = Counter(key for called, key in self.calls() if called == tool)
        return {key: n for key, n in counted.items() if n > 1}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def begun_beside(file: Path) -> Path:
    """Return the file of the calls that have reached the server, whatever becomes of them."""
    return file.with_name(f"{file.name}.begun")
