"""Who is connected to the bus, as its servers see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from nats import errors as nats_errors
from nats.aio.client import Client as Connection

from wayline.chassis.connection.connecting import ConnectionName
from wayline.contracts.errors import Unavailable
from wayline.standalone.bus.accounts_file import WITHIN_S, servers_of

PAGE = 1_000
PAGES_MAX = 100
"""Of one server."""


@dataclass(frozen=True, slots=True)
class ServiceConnection:
    """The connection of one process of a service."""

    service: str
    public_key: str
    key_ids: tuple[str, ...]
    """Of the keys with which it encrypts or signs, the one in use first."""
    role: str = ""
    """By which it logs in to the database; empty: it does not say."""


async def service_connections(nc: Connection) -> list[ServiceConnection]:
    """Return the connections of services to every server. Raises Unavailable."""
    found: list[ServiceConnection] = []
    for one in await connections(nc):
        if (named := ConnectionName.parse(one.get("name", ""))) is not None:
            key = one.get("authorized_user", "")
            found.append(ServiceConnection(named.service, key, named.key_ids, named.role))
    return found


async def connections(nc: Connection) -> list[dict[str, Any]]:
    """Return every connection to every server, as the servers tell of it. Raises Unavailable."""
    found: list[dict[str, Any]] = []
    for server in await servers_of(nc):
        for page in range(PAGES_MAX):
            wanted = orjson.dumps({"auth": True, "limit": PAGE, "offset": page * PAGE})
            try:
                answer = await nc.request(f"$SYS.REQ.SERVER.{server}.CONNZ", wanted, timeout=WITHIN_S)
            except (TimeoutError, nats_errors.Error) as error:
                raise Unavailable("the bus", detail=f"a server does not say who is connected: {error}") from None
            some = orjson.loads(answer.data)["data"].get("connections") or []
            found += some
            if len(some) < PAGE:
                break
    return found
