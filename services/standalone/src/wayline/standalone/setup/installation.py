"""One installation: its data directory, and the addresses and credentials of its processes."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from wayline.standalone.errors import AlreadyRunning, DataDirInvalid, RestoreUnfinished
from wayline.standalone.services import MEMBERS, Member
from wayline.standalone.setup.credentials import ADMIN, SYSTEM, Credentials, load_credentials, write_private

DATABASE = "wayline"
LOCK_WAIT_S = 0.5
"""A process that asks whether `wayline up` runs holds the lock for a moment."""
GRAFANA = "grafana"
GRAFANA_ROLE = "wayline_grafana"


@dataclass(frozen=True)
class Installation:
    """The data directory and where things are in it."""

    root: Path

    @property
    def nats(self) -> Path:
        return self.root / "nats"

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def credentials(self) -> Path:
        return self.root / "credentials"

    @property
    def keys(self) -> Path:
        return self.credentials / "keys.json"

    @property
    def clients(self) -> Path:
        """Return the file of the bus's clients."""
        return self.credentials / "clients.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def running_file(self) -> Path:
        """Return the file in which a running `wayline up` writes its addresses."""
        return self.root / "up.json"

    @property
    def lock(self) -> Path:
        return self.root / "up.lock"

    @property
    def sampled(self) -> Path:
        """Return the file whose presence says that the sample was ingested."""
        return self.root / "sampled"

    @property
    def restoring_file(self) -> Path:
        """Return the file that is there from the beginning to the end of a restore."""
        return self.root / "restoring.json"

    def require_restored(self) -> None:
        """Refuse an installation that is half restored. Raises RestoreUnfinished."""
        if self.restoring_file.exists():
            raise RestoreUnfinished(backup=json.loads(self.restoring_file.read_text())["backup"])

    def prepare(self) -> None:
        """Make the directories, those with secrets closed to other users. Raises DataDirInvalid."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o711)
            for closed in (self.credentials, self.logs):
                closed.mkdir(exist_ok=True, mode=0o700)
                closed.chmod(0o700)
        except (OSError, NotADirectoryError) as error:
            raise DataDirInvalid(path=self.root, cause=error.strerror or str(error)) from None

    def load_credentials(self) -> Credentials:
        """Return its credentials, generated the first time."""
        return load_credentials(
            self.keys,
            identities=[*(member.identity for member in MEMBERS), ADMIN, SYSTEM],
            roles=[*(member.identity for member in MEMBERS if member.schema), GRAFANA],
            keyed=[member.identity for member in MEMBERS if member.keys],
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock that makes this the only `wayline up` here. Raises AlreadyRunning."""
        fd = os.open(self.lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not _locked(fd, fcntl.LOCK_EX, wait_s=LOCK_WAIT_S):
                running = self.running() or {}
                raise AlreadyRunning(data_dir=self.root, pid=running.get("pid"), gateway=running.get("gateway"))
            # Until we are ready, the addresses of a crashed run must not be read.
            self.running_file.unlink(missing_ok=True)
            try:
                yield
            finally:
                self.running_file.unlink(missing_ok=True)
        finally:
            os.close(fd)

    def running(self) -> dict[str, Any] | None:
        """Return what a running `wayline up` wrote about itself once ready; None: none runs, by its lock."""
        try:
            fd = os.open(self.lock, os.O_RDONLY)
        except OSError:
            return None
        try:
            if _locked(fd, fcntl.LOCK_SH):
                return None
            return json.loads(self.running_file.read_text())
        except (OSError, ValueError):
            return None
        finally:
            os.close(fd)

    def write_running(self, **values: Any) -> None:
        """Write the addresses for other processes."""
        self.running_file.write_text(json.dumps({"pid": os.getpid(), **values}, indent=1) + "\n")


def _locked(fd: int, how: int, *, wait_s: float = 0.0) -> bool:
    """Take a lock that ends with its process; return False when another process has it."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
        time.sleep(0.01)


@dataclass(frozen=True)
class ServerAccess:
    """The addresses of an installation's bus and database, and the credentials of its processes there."""

    nats_url: str = field(repr=False)
    admin_dsn: str = field(repr=False)
    credentials: Credentials
    own_bus: bool
    """Whether the bus knows our identities, as the embedded one does."""
    nats_seed: str | None = field(default=None, repr=False)
    """For a bus of the user's own."""
    pooler_dsn: str | None = field(default=None, repr=False)
    """Where services reach the database through a pooler; the administrator never does."""

    @property
    def nats_address(self) -> str:
        """Return the bus's address without a password, to be shown."""
        return ",".join(re.sub(r"//[^@/]*@", "//", url) for url in self.nats_url.split(","))

    def seed_of(self, identity: str) -> str | None:
        return self.credentials.seeds[identity] if self.own_bus else self.nats_seed

    @property
    def postgres_hosts(self) -> list[tuple[str, int]]:
        """Return each host of the database with its port."""
        where = urlsplit(self.admin_dsn).netloc.rpartition("@")[2]
        parts = [urlsplit(f"//{host}") for host in where.split(",")]
        return [(one.hostname or "", one.port or 5432) for one in parts]

    def dsn_of(self, role: str, password_of: str) -> str:
        """Return the database's address for one role."""
        return self.dsn_for(self.credentials.role_of(role), self.credentials.passwords[password_of])

    def dsn_for(self, login: str, password: str) -> str:
        """Return the database's address for whom it knows by this name."""
        parts = urlsplit(self.pooler_dsn or self.admin_dsn)
        host = parts.netloc.rpartition("@")[2]
        who = f"{quote(login, safe='')}:{quote(password, safe='')}"
        return urlunsplit(parts._replace(netloc=f"{who}@{host}"))

    def environment_of(self, member: Member) -> dict[str, str]:
        """Return the variables of this service's process: on a secured bus with its own seed and no other."""
        seed = self.credentials.seeds[member.identity] if self.own_bus or self.nats_seed else None
        key = self.credentials.service_keys.get(member.identity)
        return {
            "WAYLINE_NATS_URL": self.nats_url,
            **({"WAYLINE_NATS_SEED": seed} if seed else {}),
            **({"WAYLINE_NATS_ACCOUNTS": "true"} if self.own_bus else {}),
            **({"WAYLINE_POSTGRES_DSN": self.dsn_of(member.role, member.identity)} if member.schema else {}),
            **({member.variable(member.keys.upper()): key} if member.keys and key else {}),
        }

    def environments(self) -> dict[str, dict[str, str]]:
        """Return the variables of every service, of the administrator and of Grafana."""
        seed = self.seed_of(ADMIN)
        admin = {"WAYLINE_NATS_URL": self.nats_url, "WAYLINE_POSTGRES_DSN": self.admin_dsn}
        return {
            **{member.identity: self.environment_of(member) for member in MEMBERS},
            ADMIN: {**admin, **({"WAYLINE_NATS_SEED": seed} if seed else {})},
            GRAFANA: {"WAYLINE_POSTGRES_DSN": self.dsn_of(GRAFANA_ROLE, GRAFANA)},
        }


def write_environments(installation: Installation, access: ServerAccess) -> None:
    """Write the variables of the installation's processes, one file for each."""
    for name, environment in access.environments().items():
        lines = [f"{key}={value}\n" for key, value in environment.items()]
        write_private(installation.credentials / f"{name}.env", "".join(lines))


def read_environment(installation: Installation, name: str) -> Mapping[str, str]:
    """Return what `write_environments` wrote for one process; empty where it wrote nothing."""
    try:
        lines = (installation.credentials / f"{name}.env").read_text().splitlines()
    except FileNotFoundError:
        return {}
    except PermissionError:
        raise DataDirInvalid(path=installation.credentials, cause="it belongs to another user") from None
    return dict(line.split("=", 1) for line in lines if "=" in line)
