"""Three NATS servers that hold every stream three times: to kill, to freeze and to bring back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nats.js import JetStreamContext

from wayline.embedded import NatsServer
from wayline.embedded.ports import LOOPBACK, free_port
from wayline.testkit.guarded import Guarded, config

SERVERS = 3


@dataclass(frozen=True)
class NatsCluster(Guarded):
    """Servers on this machine, with routes between them; `server` is the first of them."""

    servers: tuple[NatsServer, ...] = ()

    @classmethod
    def of(cls, home: Path, seeds: Mapping[str, str]) -> NatsCluster:
        """Return a cluster that has not been started, each server's data in a directory of its own."""
        routes = [free_port() for _ in range(SERVERS)]
        servers = tuple(_member(home / f"n{n}", seeds, routes, n) for n in range(SERVERS))
        return cls(servers[0], seeds, servers=servers)

    @property
    def url(self) -> str:
        """Return the addresses of all of them, as clients and services are given them."""
        return ",".join(server.url for server in self.servers)

    @property
    def logs(self) -> list[Path]:
        """Return the log of each server."""
        return [server.log for server in self.servers]

    async def start(self) -> NatsCluster:
        """Start what does not run."""
        await asyncio.gather(*(server.start() for server in self.servers))
        return self

    async def kill(self) -> None:
        """End every server as a crash would."""
        await asyncio.gather(*(server.kill() for server in self.servers))

    async def leader_of(self, js: JetStreamContext, stream: str) -> NatsServer:
        """Return the server that leads a stream now. Raises LookupError where none does."""
        cluster = (await js.stream_info(stream)).cluster
        if cluster is None or not cluster.leader:
            raise LookupError(f"{stream} has no leader")
        return self.servers[int(cluster.leader.removeprefix("n"))]


def _member(home: Path, seeds: Mapping[str, str], routes: Sequence[int], n: int) -> NatsServer:
    home.mkdir(parents=True, exist_ok=True)
    addresses = [f"nats://{LOOPBACK}:{port}" for at, port in enumerate(routes) if at != n]
    cluster = {"name": "wayline", "listen": f"{LOOPBACK}:{routes[n]}", "routes": addresses, "no_advertise": True}
    # JSON is a configuration too; a name is what the servers know each other by.
    text = f"server_name: n{n}\ncluster: {json.dumps(cluster)}\n"
    return NatsServer(home, config=text + config(home / "jetstream", seeds))
