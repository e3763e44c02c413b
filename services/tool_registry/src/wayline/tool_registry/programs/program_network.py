"""The only way out of a confined program: a guarded proxy to the hosts that its server names."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from wayline.guarded_http.proxy import GuardedProxy

log = structlog.get_logger()

PORT: Final = 3128
"""Of the proxy, inside of the jail, where nothing else has a port."""
SENT_S: Final = 5.0
"""How long a jail may take to send the socket that it has promised."""
AGAIN_S: Final = 0.1
"""Before the next socket is awaited where one could not be served."""
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


def proxy_environment() -> dict[str, str]:
    """Return the variables by which programs find the proxy; Node reads them only where it is told to."""
    address = f"http://127.0.0.1:{PORT}"
    return {**dict.fromkeys(PROXY_VARIABLES, address), "NO_PROXY": "127.0.0.1,localhost", "NODE_USE_ENV_PROXY": "1"}


@asynccontextmanager
async def program_network(door: Path, proxy_of: Callable[[], GuardedProxy]) -> AsyncIterator[None]:
    """Serve a proxy on each socket that comes through a door, which is a socket itself, one after the other.

    A jail sends a socket that listens inside of its own network: so nothing of this machine's network is opened to it.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(door))
        listener.listen()
        listener.setblocking(False)
        serving = asyncio.create_task(_serve(listener, proxy_of), name="network of a program")
        try:
            yield
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def _serve(listener: socket.socket, proxy_of: Callable[[], GuardedProxy]) -> None:
    async with AsyncExitStack() as last:
        while True:
            try:
                inside = await _next_socket(listener)
                # Of the program before, which has ended: its network lives as long as a socket of it is open here.
                await last.aclose()
                await _serve_on(inside, proxy_of, last)
            except Exception as error:
                # The program after this one needs its network, whatever was wrong here.
                log.warning("the network of a program was not opened", why=str(error) or type(error).__name__)
                await asyncio.sleep(AGAIN_S)


async def _serve_on(inside: socket.socket, proxy_of: Callable[[], GuardedProxy], until: AsyncExitStack) -> None:
    try:
        await until.enter_async_context(proxy_of().serving(inside))
    except BaseException:
        inside.close()
        raise


async def _next_socket(listener: socket.socket) -> socket.socket:
    """Return the socket that the next jail sends. Raises OSError."""
    sender, _ = await asyncio.get_running_loop().sock_accept(listener)
    return await asyncio.to_thread(_received, sender)


def _received(sender: socket.socket) -> socket.socket:
    with sender:
        sender.settimeout(SENT_S)
        _, sent, _, _ = socket.recv_fds(sender, 1, 1)
        if not sent:
            raise OSError("no socket was sent")
        return socket.socket(fileno=sent[0])
