"""Three NATS servers that hold every stream three times: to kill, to freeze, to cut off and to bring back."""

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
from wayline.testkit.network import Network

SERVERS = 3
NAMES = tuple(f"n{n}" for n in range(SERVERS))
"""What the servers are called, in the cluster and in its network."""
TEST = "test"
"""The node of the network that the test itself is."""
ROUTES = {"ping_interval": "2s", "ping_max": 2, "write_deadline": "5s"}
CLIENTS = {"ping_interval": "5s", "ping_max": 2}
"""What docs/operating.md says of both for every cluster."""
NOWHERE = f"{LOOPBACK}:1"


@dataclass(frozen=True)
class NatsCluster(Guarded):
    """Servers on this machine, with routes between them; `server` is the first of them."""

    servers: tuple[NatsServer, ...] = ()
    network: Network | None = None
    """What their routes go over; None: nothing but the machine."""

    @classmethod
    def of(
        cls,
        home: Path,
        seeds: Mapping[str, str],
        *,
        network: Network | None = None,
        disks: Sequence[Path | None] = (None,) * SERVERS,
        sync: str = "2m",
    ) -> NatsCluster:
        """Return a cluster that has not been started, each server's data in a directory or on a disk of its own."""
        ports = [free_port() for _ in range(SERVERS)]
        servers = []
        for n, (name, disk) in enumerate(zip(NAMES, disks, strict=True)):
            others = [(other, port) for other, port in zip(NAMES, ports, strict=True) if other != name]
            routes = [network.link(name, other, port) if network else port for other, port in others]
            servers.append(_member((disk or home) / name, seeds, name, listen=ports[n], routes=routes, sync=sync))
        return cls(servers[0], seeds, servers=tuple(servers), network=network)

    @property
    def url(self) -> str:
        """Return the addresses of all of them, as the test and its services are given them."""
        if self.network is not None:
            return self.url_from(TEST)
        return ",".join(server.url for server in self.servers)

    def url_from(self, node: str) -> str:
        """Return the addresses of all of them as a node of the network reaches them; before its start."""
        assert self.network is not None
        ports = [self.network.link(node, name, one.port) for name, one in zip(NAMES, self.servers, strict=True)]
        return ",".join(f"nats://{LOOPBACK}:{port}" for port in ports)

    @property
    def logs(self) -> list[Path]:
        """Return the log of each server."""
        return [server.log for server in self.servers]

    async def start(self) -> NatsCluster:
        """Start what does not run."""
        if self.network is not None and self.network.process is None:
            await self.network.start()
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
        return self.servers[NAMES.index(cluster.leader)]


def _member(
    home: Path, seeds: Mapping[str, str], name: str, *, listen: int, routes: Sequence[int], sync: str
) -> NatsServer:
    home.mkdir(parents=True, exist_ok=True)
    cluster = {
        "name": "wayline",
        "listen": f"{LOOPBACK}:{listen}",
        "routes": [f"nats://{LOOPBACK}:{port}" for port in routes],
        # A server that hears nothing ends its routes by these: until then it disturbs every election of the others.
        **ROUTES,
        "no_advertise": True,
        # One that was cut off is told by others where its peer is: it would go there past the network.
        "advertise": NOWHERE,
    }
    # JSON is a configuration too; a name is what the servers know each other by.
    text = f"server_name: {name}\ncluster: {json.dumps(cluster)}\n"
    text += "".join(f"{setting}: {json.dumps(value)}\n" for setting, value in CLIENTS.items())
    return NatsServer(home, config=text + config(home / "jetstream", seeds, sync_interval=sync))
