"""Everything is rotated while jobs are submitted: no request is refused and no job is lost."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx2
import pytest

from wayline.embedded import free_port
from wayline.embedded.process import Child
from wayline.standalone.servers.embedded import nats_server
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation, ServerAccess, write_environments
from wayline.standalone.setup.migrations import migrate_all
from wayline.testkit import Database, until
from wayline.testkit.fixtures import run
from wayline.testkit.service_starts import start_command

from .conftest import END_WITHIN_S, START_WITHIN_S, Installed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(560)]

SERVICES = ("gateway", "router", "executor", "tool-registry", "retrieval", "notifier", "tracing")
ROUNDS_MAX = 8
"""Of the command: it needs three with restarts between for keys that are first readable and then used."""
ENDED = ("completed", "failed", "cancelled")
REFUSED = ("Authorization Violation", "Permissions Violation", "password authentication failed")


@dataclass
class Replica:
    """One process of every service, with a gateway on a port of its own."""

    port: int
    process: Child

    @classmethod
    def start(cls, installed: Installed) -> Replica:
        port = free_port()
        env = {**installed.env, "WAYLINE_HTTP_PORT": str(port)}
        process = start_command("serve", *SERVICES, cwd=installed.data.parent, log=installed.output, env=env)
        replica = cls(port, process)
        run(until(replica.is_ready, within=START_WITHIN_S, why=f"a replica is ready; see {installed.output}"))
        return replica

    def is_ready(self) -> bool:
        assert not self.process.exited
        try:
            return httpx2.get(f"http://127.0.0.1:{self.port}/health/ready").status_code == httpx2.codes.OK
        except httpx2.TransportError:
            return False

    def stop(self) -> None:
        assert run(self.process.end(signal.SIGTERM, within_s=END_WITHIN_S))


@dataclass
class Load:
    """Submits jobs one after the other, at a gateway that is there; an answer that refuses one is kept."""

    ports: list[int]
    jobs: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[Load]:
        thread = threading.Thread(target=self._submit)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join(END_WITHIN_S)

    def _submit(self) -> None:
        while not self._over.is_set():
            body = {"agent": "assistant", "input": "What time is it?", "job_id": f"load-{len(self.jobs)}"}
            for port in list(self.ports):
                try:
                    answer = httpx2.post(f"http://127.0.0.1:{port}/v1/jobs", json=body, timeout=END_WITHIN_S)
                except httpx2.TransportError:
                    continue  # It is being restarted: a client goes to the other one.
                if answer.is_error:
                    self.refused.append(answer.text)
                break
            else:
                self.refused.append("no gateway answers")
            self.jobs.append(body["job_id"])
            self._over.wait(0.2)


@pytest.fixture
def migrated(fresh: Installed, database: Database) -> Iterator[Installed]:
    """Servers of one's own, which no process of Wayline watches."""
    settings = Settings(data_dir=fresh.data, nats_port=fresh.nats_port, postgres_dsn=database.dsn)
    installation = Installation(fresh.data)
    installation.prepare()
    credentials = installation.load_credentials()
    server = nats_server(installation, settings, credentials)
    run(server.start())
    access = ServerAccess(server.url, database.dsn, credentials, own_bus=True)

    async def migrate() -> None:
        async for _ in migrate_all(access, settings.limits):
            pass

    run(migrate())
    write_environments(installation, access)
    yield fresh
    run(server.kill())


def test_everything_is_rotated_and_no_request_is_refused(migrated: Installed, database: Database):
    replicas = [Replica.start(migrated), Replica.start(migrated)]
    load = Load([replica.port for replica in replicas])
    left = ["nkeys", "passwords", "secret-keys", "snapshot-keys"]
    try:
        with load.running():
            for _ in range(ROUNDS_MAX):
                left = [what for what in left if _rotated(migrated, database, what)["outcome"] != "finished"]
                if not left:
                    break
                replicas = [_replaced(migrated, load, replica) for replica in replicas]
            submitted = len(load.jobs)
            run(until(lambda: len(load.jobs) > submitted + 5, within=60, why="jobs are submitted after the last step"))

        assert left == []
        assert load.refused == []
        for job in load.jobs:
            run(until(lambda job=job: _status(load, job) in ENDED, within=60, why=f"{job} ends"))
            assert _status(load, job) == "completed"
        said = migrated.output.read_text()
        assert not [words for words in REFUSED if words in said]
    finally:
        for replica in replicas:
            replica.stop()


def _rotated(installed: Installed, database: Database, what: str) -> dict[str, str]:
    """Do what is due of a rotation, and return what came of it."""
    done = installed.wayline("rotate", what, "--json", WAYLINE_POSTGRES_DSN=database.dsn)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["rotations"][0]


def _status(load: Load, job: str) -> str:
    return httpx2.get(f"http://127.0.0.1:{load.ports[0]}/v1/jobs/{job}").json()["status"]


def _replaced(installed: Installed, load: Load, replica: Replica) -> Replica:
    """Start a replica before another one is stopped."""
    newer = Replica.start(installed)
    load.ports.insert(0, newer.port)
    load.ports.remove(replica.port)
    replica.stop()
    return newer
