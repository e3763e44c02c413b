"""A program's network that cannot be served takes nothing from the program after it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from wayline.tool_registry.programs.program_network import program_network


class Proxy:
    """Serves a socket, and notes that it does."""

    def __init__(self) -> None:
        self.serves = asyncio.Event()

    @contextlib.asynccontextmanager
    async def serving(self, inside: socket.socket) -> AsyncIterator[None]:
        self.serves.set()
        with inside:
            yield


def send_socket(door: Path) -> None:
    with socket.socket(socket.AF_UNIX) as jail, socket.socket(socket.AF_UNIX) as inside:
        jail.connect(str(door))
        socket.send_fds(jail, [b"s"], [inside.fileno()])


async def test_after_a_proxy_that_failed_the_next_program_has_its_network(tmp_path: Path):
    door, proxy, failed = tmp_path / "door", Proxy(), asyncio.Event()

    def proxy_of() -> Any:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("no certificates")
        return proxy

    async with asyncio.timeout(10), program_network(door, proxy_of):
        await asyncio.to_thread(send_socket, door)
        await failed.wait()
        await asyncio.to_thread(send_socket, door)
        await proxy.serves.wait()
