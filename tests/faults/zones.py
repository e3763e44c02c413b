"""Where the services of a cluster's network are: each zone has one replica of them, and addresses of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

POSTGRES = "postgres"
"""The node of a cluster's network that the database is."""


@dataclass(frozen=True)
class Zone:
    """A node of a cluster's network with one replica of services: how it reaches NATS and Postgres."""

    nats_url: str
    ports: Mapping[int, int]
    """Where each server of Postgres is reached from here, by the port that other addresses say."""

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return a service's environment with the addresses of this zone."""
        name = "WAYLINE_POSTGRES_DSN"
        dsn = re.sub(r":(\d+)(?=[,/])", lambda found: f":{self.ports[int(found[1])]}", given.get(name, ""))
        return {"WAYLINE_NATS_URL": self.nats_url, **({name: dsn} if dsn else {})}
