"""Refuse what processes of the last release do not understand, while some of them run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from wayline.contracts.errors import Unavailable
from wayline.standalone.errors import NoServers, OlderReplicas
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation
from wayline.standalone.setup.migrate import find_servers
from wayline.standalone.upgrade.replicas import BEFORE, Replica, find_replicas


async def require_no_older(settings: Settings) -> None:
    """Check that no process of before 0.2.0 runs, as far as can be seen from here. Raises OlderReplicas."""
    if os.environ.get("WAYLINE_URL") and settings.nats_url is None:
        # The gateway of another installation than the one here: its bus is not known.
        return
    installation = Installation(settings.data_dir.absolute())
    if not installation.keys.exists():
        return
    try:
        found = await find_replicas(find_servers(settings, installation), settings, installation)
    except (NoServers, Unavailable):
        return
    if older := named_older(found.replicas):
        raise OlderReplicas(running=older)


def named_older(replicas: Iterable[Replica]) -> str:
    """Return the services that have processes of before 0.2.0, each with how many; empty: none."""
    older = Counter(one.service.replace("_", "-") for one in replicas if one.version == BEFORE)
    return ", ".join(f"{count} {service}" for service, count in sorted(older.items()))
