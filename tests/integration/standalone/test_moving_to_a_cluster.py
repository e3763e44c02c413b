"""An installation of one machine moves to three NATS servers and a Postgres of one's own and back, as documented."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import nats
import pytest

from wayline.embedded import NatsServer, PostgresServer, free_port, minimal_config
from wayline.testkit import until
from wayline.testkit.fixtures import FAST, run
from wayline.testkit.nats_cluster import NAMES, ROUTES

from .conftest import Installed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

SERVICES = ("gateway", "router", "executor", "tool-registry", "tracing", "retrieval", "notifier")
ANSWERS_WITHIN_S = 90.0
ENDS_WITHIN_S = 30.0


@pytest.fixture
def postgres(server_dir: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(server_dir / "own-postgres", settings=FAST)
    run(server.start())
    yield server
    run(server.kill())


def members(home: Path) -> list[NatsServer]:
    """Return three servers that read the accounts that `wayline credentials write` has written beside them."""
    ports = {name: free_port() for name in NAMES}
    servers = []
    for name, port in ports.items():
        routes = [f"nats://127.0.0.1:{other}" for other in ports.values() if other != port]
        cluster = {"name": "wayline", "listen": f"127.0.0.1:{port}", "routes": routes, **ROUTES}
        text = f"server_name: {name}\ncluster: {json.dumps(cluster)}\n"
        text += minimal_config(home / name / "jetstream", sync_interval="always")
        servers.append(NatsServer(home / name, config=f"{text}include ../accounts.conf\n", port=free_port()))
    return servers


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def is_well(installed: Installed) -> bool:
    return installed.wayline("doctor").returncode == 0


def test_a_laptops_jobs_move_to_three_servers_and_back(fresh: Installed, postgres: PostgresServer):
    home = fresh.data.parent
    fresh.start()
    job = fresh.run_json("run", "What time is it?")["job_id"]
    seed = fresh.run_json("credentials", "create", "shop", "--tenant", "default", "--scopes", "follow")["seed"]
    assert fresh.stop() == 0
    fresh.run_json("backup", str(home / "move.tar"))

    moved = Installed(home / "moved", more={"WAYLINE_NATS_ACCOUNTS_FILE": str(home / "accounts.conf")})
    succeeded(moved.wayline("credentials", "write"))
    servers = members(home)
    with ExitStack() as stack:
        stack.callback(lambda: run(ended(servers)))
        run(started(servers))
        moved.more["WAYLINE_NATS_URL"] = ",".join(server.url for server in servers)
        moved.more["WAYLINE_POSTGRES_ADMIN_DSN"] = postgres.dsn()
        succeeded(moved.wayline("restore", str(home / "move.tar"), "--replicas", "3", "--nothing-after"))
        told = json.loads(succeeded(moved.wayline("credentials", "write", "--json")))
        serving = moved.spawn("serve", *SERVICES)
        stack.callback(serving.wait, ENDS_WITHIN_S)
        stack.callback(serving.terminate)
        run(until(lambda: moved.wayline("jobs", "show", job).returncode == 0, within=ANSWERS_WITHIN_S, why="it serves"))

        assert moved.run_json("jobs", "show", job)["status"] == "completed"
        assert moved.run_json("run", "What time is it?")["status"] == "completed"
        moved.more["WAYLINE_URL"] = f"http://127.0.0.1:{moved.http_port}"
        run(until(lambda: is_well(moved), within=ANSWERS_WITHIN_S, why="doctor finds no problem on three servers"))
        copies = [one["state"] for one in moved.run_json("doctor")["findings"] if one["about"] == "copies"]
        assert (copies, told["servers_told"]) == (["ok"], len(servers))
        run(connects(servers[-1], seed))

        serving.terminate()
        serving.wait(ENDS_WITHIN_S)
        del moved.more["WAYLINE_URL"]
        moved.run_json("backup", str(home / "back.tar"))

    back = Installed(home / "back")
    succeeded(back.wayline("restore", str(home / "back.tar"), "--replicas", "1", "--nothing-after"))
    with ExitStack() as stack:
        stack.callback(back.abandon)
        back.start()
        assert back.run_json("jobs", "show", job)["status"] == "completed"
        assert back.run_json("run", "What time is it?")["status"] == "completed"
        run(until(lambda: is_well(back), within=ANSWERS_WITHIN_S, why="doctor finds no problem on one server"))


async def started(servers: list[NatsServer]) -> None:
    await asyncio.gather(*(server.start() for server in servers))


async def ended(servers: list[NatsServer]) -> None:
    await asyncio.gather(*(server.kill() for server in servers))


async def connects(server: NatsServer, seed: str) -> None:
    """A client of the bus of before is one of this bus."""
    client = await nats.connect(server.url, nkeys_seed_str=seed, allow_reconnect=False)
    await client.close()
