"""The HTTP server as a part of the service: a clear error when it cannot listen, and followers are ended first."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from wayline.chassis.bounded_http import Places
from wayline.chassis.probes import server
from wayline.contracts.errors import WrongSetting
from wayline.gateway.errors import NoKeys, PortTaken
from wayline.gateway.event_streams import EventStreams
from wayline.gateway.settings import Settings

log = structlog.get_logger()

BACKLOG = 2_048


class HttpServer:
    """Listens, serves `app`, and stops."""

    def __init__(
        self, app: Any, settings: Settings, streams: EventStreams, *, any_key: Callable[[], Awaitable[bool]]
    ) -> None:
        self._app = app
        self._settings = settings
        self._streams = streams
        self._any_key = any_key
        self._serving: asyncio.Task[None] | None = None
        self.port = settings.http_port

    @property
    def url(self) -> str:
        host = f"[{self._settings.http_host}]" if ":" in self._settings.http_host else self._settings.http_host
        return f"http://{host}:{self.port}"

    async def start(self) -> None:
        """Open the port. Raises PortTaken, or NoKeys when the door would be open to others than this machine."""
        open_door = not await self._any_key()
        if open_door and not self._settings.loopback:
            raise NoKeys(host=self._settings.http_host)
        sock = _listen(self._settings.http_host, self._settings.http_port)
        self.port = sock.getsockname()[1]
        places = Places.within_files(
            most=self._settings.connections_max,
            per_address=self._settings.connections_per_address_max,
            head_within_s=self._settings.request_within_s,
            body_silent_s=self._settings.body_silent_s,
            write_stalled_s=self._settings.write_stalled_s,
            idle_s=self._settings.idle_s,
        )
        if places.most < self._settings.connections_max:
            log.warning("the system allows fewer open files than connections are wanted", connections=places.most)
        self._http = server(self._app, host=self._settings.http_host, port=self.port, places=places)
        self._serving = asyncio.create_task(self._http.serve(sockets=[sock]), name="gateway http")
        while not self._http.started:
            if self._serving.done():
                await self._serving
            await asyncio.sleep(0.005)
        if open_door:
            log.warning("no API key exists: every caller of this port acts as tenant `default`", url=self.url)
        log.info("listening", url=self.url)

    async def stop(self, grace_s: float) -> None:
        """Let followers go (they come back with Last-Event-ID), finish other requests within the grace."""
        if self._serving is None:
            return
        self._http.config.timeout_graceful_shutdown = math.ceil(grace_s)
        self._http.should_exit = True
        self._streams.close()
        await self._serving


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(BACKLOG)
        except OSError:
            sock.close()
            raise
    except socket.gaierror as error:
        raise WrongSetting("WAYLINE_HTTP_HOST", f"no address is called {host!r} ({error.strerror})") from None
    except OSError as error:
        raise PortTaken(host=host, port=port, cause=error.strerror or str(error)) from None
    sock.setblocking(False)
    return sock
