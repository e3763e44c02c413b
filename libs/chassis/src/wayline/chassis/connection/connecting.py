"""Connecting to the bus as one identity, and staying connected for ever."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import structlog
from nats import errors as nats_errors

from wayline.chassis.access.identity import OWN_API
from wayline.chassis.access.permissions import IDENTITIES
from wayline.chassis.concurrency.awaited_tasks import stopped
from wayline.chassis.nats_client.bus_client import BusClient
from wayline.chassis.running_version import running_version
from wayline.chassis.settings import BusSettings
from wayline.contracts.errors import Reject, Unavailable
from wayline.telemetry import metrics

log = structlog.get_logger()

CONNECTED_AS = "wayline-"
"""How the name of a service's connection begins: its own name and its version follow."""
_NAME = re.compile(rf"{CONNECTED_AS}([a-z_]+)(?: ([^\[\]]+?))??(?: as (\w+))?(?: \[([^\]]*)\])?")
_ROLE = re.compile(r"\w+")
RECONNECT_S = 0.25
PING_S = 10
PINGS_LOST_MAX = 2
PENDING_MAX_BYTES = 16 * 1024 * 1024
LEAVE_S = 2
"""How long a leaving client waits for messages that were received and not read: their readers have been stopped."""
CLOSED_EXIT_CODE = 70
LOOK_S = 0.05
"""The pause between two checks of a connection that is being made."""
REACH_S = 1.0
"""How long one server has to accept a connection: a machine that is gone does not even refuse it."""
NATS_PORT = 4222

_DENIED = re.compile(r"permissions violation for (publish|subscription) to \"([^\"]+)\"", re.I)
_REFUSED = re.compile(r"authorization violation|authentication (?!timeout)", re.I)


@dataclass(frozen=True, slots=True)
class ConnectionName:
    """What a service's connection says of its process: an upgrade and a rotation see by it who is how far."""

    service: str
    version: str = ""
    key_ids: tuple[str, ...] = ()
    """Of the keys with which the process encrypts or signs, the one in use first."""
    role: str = ""
    """By which it logs in to the database; empty: it has none, or is of a version that does not say it."""

    def __str__(self) -> str:
        """Return the name."""
        keys = f"[{' '.join(self.key_ids)}]" if self.key_ids else ""
        role = f"as {self.role}" if self.role else ""
        return " ".join(filter(None, [f"{CONNECTED_AS}{self.service}", self.version, role, keys]))

    @classmethod
    def parse(cls, name: str) -> ConnectionName | None:
        """Read a name; None: it is no service's."""
        found = _NAME.fullmatch(name)
        return cls(found[1], found[2] or "", tuple((found[4] or "").split()), found[3] or "") if found else None


@dataclass
class Link:
    """A connection's name, options and callbacks, with the errors that the server has sent on it."""

    service: str
    exit_when_closed: bool = True
    accounts: bool = False
    """Whether the bus has the accounts of `accounts.py`."""
    replies_per_tenant_max_bytes: int = 32 * 1024**2
    key_ids: tuple[str, ...] = ()
    """Of the keys with which the process encrypts or signs, the one in use first: shown in the connection's name."""
    denied: dict[str, str] = field(default_factory=dict)
    """Subjects this identity may not use, with the server's error texts."""
    reconnected: list[Callable[[], None]] = field(default_factory=list)
    """Called after each reconnect: the server has forgotten what was asked of it."""
    closing: bool = False
    refused: str | None = None

    @property
    def api(self) -> str:
        """Return the prefix of JetStream's API in the account that this identity is a user of."""
        identity = IDENTITIES.get(self.service)
        return identity.api if self.accounts and identity else OWN_API

    def name_of(self, settings: BusSettings) -> ConnectionName:
        """Return what the connection says of this process."""
        role = (urlsplit(settings.postgres_dsn).username if settings.postgres_dsn else None) or ""
        # Another's role than ours may have any letters; nobody asks for it.
        return ConnectionName(self.service, str(running_version()), self.key_ids, role if _ROLE.fullmatch(role) else "")

    def options(self, settings: BusSettings) -> dict[str, Any]:
        options: dict[str, Any] = {
            "servers": settings.nats_url.split(","),
            "name": str(self.name_of(settings)),
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": RECONNECT_S,
            "ping_interval": PING_S,
            "max_outstanding_pings": PINGS_LOST_MAX,
            "allow_reconnect": True,
            "pending_size": PENDING_MAX_BYTES,
            "drain_timeout": LEAVE_S,
            "error_cb": self._on_error,
            "disconnected_cb": self._on_disconnect,
            "reconnected_cb": self._on_reconnect,
            "closed_cb": self._on_closed,
        }
        if settings.nats_seed:
            options |= {"nkeys_seed_str": settings.nats_seed, "inbox_prefix": f"_INBOX_{self.service}"}
        return options

    async def _on_error(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        denied = _DENIED.search(text)
        if denied:
            self.denied[denied.group(2)] = text
        elif _REFUSED.search(text):
            self.refused = text
        metrics.bus_errors.labels(self.service, "denied" if denied else type(error).__name__).inc()
        log.warning("bus error", service=self.service, error=text)

    async def _on_disconnect(self) -> None:
        metrics.bus_connected.labels(self.service).set(0)
        if not self.closing:
            log.warning("bus connection lost, reconnecting", service=self.service)

    async def _on_reconnect(self) -> None:
        metrics.bus_connected.labels(self.service).set(1)
        log.info("bus connection is back", service=self.service)
        # The permissions may have been corrected meanwhile; a subject that is still denied is denied again.
        self.denied.clear()
        for call in self.reconnected:
            call()

    async def _on_closed(self) -> None:
        metrics.bus_connected.labels(self.service).set(0)
        if self.exit_when_closed and not self.closing:
            # Subscriptions on a closed connection spin or hang; a supervisor restarts what has ended.
            log.error("the bus connection is closed for good, ending the process", service=self.service)
            os._exit(CLOSED_EXIT_CODE)


async def connect(link: Link, settings: BusSettings) -> BusClient:
    """Return a connected client, waiting up to `connect_wait_s` for a bus that is still starting.

    Raises Unavailable with the bus's address, or Reject when the bus does not accept our credentials.
    """
    nc, deadline = BusClient(), time.monotonic() + settings.connect_wait_s
    connecting: asyncio.Task[None] | None = None
    last: str = "no answer"
    try:
        while time.monotonic() < deadline:
            try:
                if connecting is None:
                    # A refused nats-py connect costs 2 s, a refused socket nothing.
                    await _require_listener(settings.nats_url)
                    connecting = asyncio.create_task(nc.connect(**link.options(settings)))
                # nats-py itself tries for ever, wrong credentials included.
                await asyncio.wait({connecting}, timeout=LOOK_S)
                if connecting.done():
                    connecting.result()
                    metrics.bus_connected.labels(link.service).set(1)
                    return nc
            except (OSError, nats_errors.Error) as error:
                last, connecting = str(error) or type(error).__name__, None
                await asyncio.sleep(LOOK_S)
            _require_accepted(link, settings)
    except BaseException:
        link.closing = True
        raise
    finally:
        if connecting is not None and not connecting.done():
            link.closing = True
            await stopped(connecting)
            await nc.close()
    raise Unavailable(
        f"the bus at {settings.nats_url}", detail=f"{last}. Is NATS running, and is WAYLINE_NATS_URL right?"
    )


def _require_accepted(link: Link, settings: BusSettings) -> None:
    if link.refused:
        raise Reject(
            f"the bus at {settings.nats_url} does not accept the credentials of {link.service}: set "
            "WAYLINE_NATS_SEED to the seed that `wayline up` or `wayline migrate` wrote for it",
            code="bus_refused",
        )


async def _require_listener(urls: str) -> None:
    """Check that at least one of the bus's servers takes connections. Raises OSError when none does."""
    refused = OSError("WAYLINE_NATS_URL names no server")
    try:
        for url in urls.split(","):
            server = urlsplit(url if "://" in url else f"nats://{url}")
            try:
                async with asyncio.timeout(REACH_S):
                    _, writer = await asyncio.open_connection(server.hostname, server.port or NATS_PORT)
                writer.close()
                return
            except OSError as error:
                refused = error
        raise refused
    finally:
        # Kept here it would keep itself and its frames.
        del refused
