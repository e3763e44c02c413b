"""What metrics tell of standbys of Postgres."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from prometheus_client import REGISTRY

from wayline.tracing.upkeep.gauges import Gauges

# Nobody gave these a name: each has that of the program that receives the log.
ROWS = [{"standby": "walreceiver", "behind_bytes": 900}, {"standby": "walreceiver", "behind_bytes": 0}]


async def test_standbys_of_one_name_are_counted_and_the_furthest_told():
    async def fetch(_: str) -> list[dict[str, Any]]:
        return ROWS

    @asynccontextmanager
    async def system():
        yield SimpleNamespace(fetch=fetch)

    store: Any = SimpleNamespace(system=system, sql=SimpleNamespace(standbys_behind=""))
    bus: Any = None

    await Gauges(bus, store, labels_max=1).read_standbys()

    behind = REGISTRY.get_sample_value("wayline_postgres_standby_behind_bytes", {"standby": "walreceiver"})
    assert (REGISTRY.get_sample_value("wayline_postgres_standbys"), behind) == (2, 900)
