"""Which version each running service is, by the name under which it is connected to the bus."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import nats
import orjson
from nats import errors as nats_errors

from wayline.chassis.connection.connecting import ConnectionName
from wayline.chassis.running_version import RunningVersion
from wayline.standalone.services import MEMBERS
from wayline.standalone.settings import Settings
from wayline.standalone.setup.credentials import SYSTEM
from wayline.standalone.setup.installation import ServerAccess
from wayline.standalone.upgrade.upgrade_step import UpgradeStep

CONNECTIONS_MAX: Final = 10_000
SERVERS_MAX: Final = 100
FIRST_WITHIN_S: Final = 5.0
NEXT_WITHIN_S: Final = 0.5
"""How long a further server of a cluster has to answer."""
BEFORE: Final = "before 0.2.0"
"""Of a service that does not say its version when it connects."""
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


async def find_replicas(access: ServerAccess, settings: Settings) -> list[Replica] | None:
    """Return the services that are connected; None: neither the monitoring page nor the system account is known."""
    if settings.nats_monitor_url is not None:
        async with httpx2.AsyncClient(trust_env=False, timeout=FIRST_WITHIN_S) as http:
            answer = await http.get(f"{settings.nats_monitor_url}/connz", params={"limit": CONNECTIONS_MAX})
            return sorted_replicas(answer.json()["connections"])
    if not access.own_bus:
        return None
    nc = await nats.connect(
        access.nats_url.split(","), nkeys_seed_str=access.credentials.seeds[SYSTEM], allow_reconnect=False
    )
    try:
        inbox, found = nc.new_inbox(), list[dict[str, Any]]()
        answers = await nc.subscribe(inbox, max_msgs=SERVERS_MAX)
        wanted = orjson.dumps({"limit": CONNECTIONS_MAX})
        await nc.publish("$SYS.REQ.SERVER.PING.CONNZ", wanted, reply=inbox)
        try:
            while True:
                answer = await answers.next_msg(timeout=NEXT_WITHIN_S if found else FIRST_WITHIN_S)
                found += orjson.loads(answer.data)["data"]["connections"] or []
        except nats_errors.TimeoutError:
            return sorted_replicas(found)
    finally:
        await nc.close()


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
