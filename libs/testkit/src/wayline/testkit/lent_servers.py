"""NATS servers that one test after the other uses: a new process is dearer than new streams."""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from wayline.embedded import NatsServer

LET_GO_WITHIN_S = 1.0
POLL_S = 0.002


@dataclass
class LentServers:
    """The servers that are lent to no test just now, by what their configuration is called."""

    spare: dict[str, list[NatsServer]] = field(default_factory=dict)

    def borrow(self, kind: str) -> NatsServer | None:
        """Return a server that an earlier test has used, whose streams are still there."""
        servers = self.spare.get(kind)
        return servers.pop() if servers else None

    async def give_back(self, kind: str, server: NatsServer, *, pid: int) -> None:
        """Keep a server for the next test, or end it where this one killed it or has left a connection open."""
        if server.running and server.pid == pid and await _is_let_go(pid):
            self.spare.setdefault(kind, []).append(server)
        else:
            await end(server)

    async def end(self) -> None:
        """End the servers that are lent to no test."""
        for servers in self.spare.values():
            while servers:
                await end(servers.pop())


async def end(server: NatsServer) -> None:
    """End a server and remove what it stored."""
    await server.kill()
    shutil.rmtree(server.data_dir, ignore_errors=True)


async def _is_let_go(pid: int) -> bool:
    """Return whether only the server's own socket is left soon, on which it listens: an open connection may act."""
    if sys.platform != "linux":
        return False
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LET_GO_WITHIN_S
    while _sockets(pid) > 1:
        if loop.time() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


def _sockets(pid: int) -> int:
    count = 0
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            count += fd.readlink().name.startswith("socket:")
        except OSError:
            continue
    return count
