"""Which version each running service is, by the name under which it is connected to the bus."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from wayline.chassis.connection.connecting import ConnectionName
from wayline.chassis.running_version import RunningVersion
from wayline.contracts.errors import Unavailable
from wayline.standalone.bus.accounts_file import NotReached, as_system
from wayline.standalone.bus.connections import connections
from wayline.standalone.services import MEMBERS
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation, ServerAccess
from wayline.standalone.upgrade.upgrade_step import UpgradeStep

CONNECTIONS_MAX: Final = 10_000
PAGE_WITHIN_S: Final = 5.0
BEFORE: Final = "before 0.2.0"
"""Of a service that does not say its version when it connects."""
SET_URL: Final = "set WAYLINE_NATS_MONITOR_URL to the monitoring page of your bus"
SET_EACH: Final = "run this with WAYLINE_NATS_MONITOR_URL of each server"
ORDER: Final = ("retrieval", "tool_registry", "tracing", "notifier", "router", "executor", "gateway")
"""The order of restarts: who answers before who asks, who reads records before who writes them."""


@dataclass(frozen=True)
class Replica:
    """A running process of a service, as the bus knows it."""

    service: str
    version: str
    where: str
    since: str = ""
    """When it connected, as the server tells."""


@dataclass(frozen=True)
class Replicas:
    """The services that are connected, and which others may be."""

    replicas: list[Replica]
    unseen: str = ""
    """Why there may be others; empty: there are none."""
    todo: str = ""
    """What to do to see them."""


async def find_replicas(access: ServerAccess, settings: Settings, installation: Installation) -> Replicas:
    """Return the services that are connected, as the bus itself tells, else one server's page. Raises Unavailable."""
    url = settings.nats_monitor_url
    try:
        if access.own_bus:
            try:
                async with as_system(settings, installation, access.credentials) as nc:
                    return Replicas(sorted_replicas(await connections(nc)))
            except NotReached:
                if url is None:
                    raise
        if url is None:
            return Replicas([], "the versions of the running services were not asked for", SET_URL)
        found, alone = await _monitored(url)
    except (httpx2.HTTPError, NotReached, ValueError, KeyError) as error:
        raise Unavailable("the bus", detail=f"it does not say who is connected: {error}") from None
    unseen = "" if alone else "only the services that are connected to one server of the cluster were seen"
    return Replicas(sorted_replicas(found), unseen, "" if alone else SET_EACH)


async def _monitored(url: str) -> tuple[list[dict[str, Any]], bool]:
    """Return what the monitoring page of a server says of its connections, and whether it says all of them."""
    async with httpx2.AsyncClient(trust_env=False, timeout=PAGE_WITHIN_S) as http:
        answer = await http.get(f"{url}/connz", params={"limit": CONNECTIONS_MAX})
        page = answer.raise_for_status().json()
        routes = (await http.get(f"{url}/routez")).raise_for_status().json().get("num_routes", 0)
    found = page["connections"]
    return found, not routes and page.get("total", len(found)) <= len(found)


def sorted_replicas(connections: Iterable[dict[str, Any]]) -> list[Replica]:
    """Return those connections that are services of ours, in the order of restarts."""
    known = {member.identity for member in MEMBERS}
    found = []
    for connection in connections:
        name = ConnectionName.parse(str(connection.get("name", "")))
        if name is not None and name.service in known:
            where = f"{connection.get('ip', '')}:{connection.get('port', '')}"
            since = str(connection.get("start", ""))[:19]
            found.append(Replica(name.service, name.version or BEFORE, where, since))
    return sorted(found, key=lambda one: (ORDER.index(one.service), one.where))


def restarts(replicas: Iterable[Replica], here: RunningVersion) -> list[UpgradeStep]:
    """Return a step for each service that has processes of another version, in the order of restarts."""
    others: dict[str, list[Replica]] = {}
    for replica in replicas:
        if replica.version != str(here):
            others.setdefault(replica.service, []).append(replica)
    steps = []
    for service, found in others.items():
        versions = ", ".join(sorted({one.version for one in found}))
        text = f"{service.replace('_', '-')}: {len(found)} running, of {versions}"
        steps.append(
            UpgradeStep("restart", text, "end it by SIGTERM and start this version, one process after the other")
        )
    return steps
