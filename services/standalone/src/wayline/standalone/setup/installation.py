"""One installation: its data directory, and what processes that belong to it need to know."""

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

from wayline.standalone.setup.credentials import ADMIN, SYSTEM, Credentials, load_credentials, write_private
from wayline.standalone.errors import AlreadyRunning, DataDirInvalid
from wayline.standalone.services import MEMBERS, Member

DATABASE = "wayline"
LOOKED_AT_S = 0.5
"""Whoever asks whether we run holds the lock for a moment."""
GRAFANA = "grafana"


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
        """Whom `wayline credentials` has let in."""
        return self.credentials / "clients.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def note(self) -> Path:
        """Written by a running `wayline up`: where it is."""
        return self.root / "up.json"

    @property
    def lock(self) -> Path:
        return self.root / "up.lock"

    @property
    def sampled(self) -> Path:
        """Its presence says that the sample knowledge was offered."""
        return self.root / "sampled"

    def prepare(self) -> None:
        """Make the directories; what is secret is closed to others. Raises DataDirInvalid."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o711)
            for closed in (self.credentials, self.logs):
                closed.mkdir(exist_ok=True, mode=0o700)
                closed.chmod(0o700)
        except (OSError, NotADirectoryError) as error:
            raise DataDirInvalid(path=self.root, cause=error.strerror or str(error)) from None

    def load_credentials(self) -> Credentials:
        """Its credentials, generated the first time."""
        return load_credentials(
            self.keys,
            identities=[*(member.identity for member in MEMBERS), ADMIN, SYSTEM],
            roles=[*(member.identity for member in MEMBERS if member.schema), GRAFANA],
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the only `wayline up` here. Raises AlreadyRunning."""
        fd = os.open(self.lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not _locked(fd, fcntl.LOCK_EX, wait_s=LOOKED_AT_S):
                running = self.running() or {}
                raise AlreadyRunning(data_dir=self.root, pid=running.get("pid"), gateway=running.get("gateway"))
            # Until we are ready nobody shall read where a run that crashed was.
            self.note.unlink(missing_ok=True)
            try:
                yield
            finally:
                self.note.unlink(missing_ok=True)
        finally:
            os.close(fd)

    def running(self) -> dict[str, Any] | None:
        """What the running `wayline up` says about itself once it is ready; the lock tells whether there is one."""
        try:
            fd = os.open(self.lock, os.O_RDONLY)
        except OSError:
            return None
        try:
            if _locked(fd, fcntl.LOCK_SH):
                return None
            return json.loads(self.note.read_text())
        except (OSError, ValueError):
            return None
        finally:
            os.close(fd)

    def say_running(self, **said: Any) -> None:
        """Leave a note for other processes."""
        self.note.write_text(json.dumps({"pid": os.getpid(), **said}, indent=1) + "\n")


def _locked(fd: int, how: int, *, wait_s: float = 0.0) -> bool:
    """Take a lock that ends with its process; false when somebody else has it."""
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
class Place:
    """Where the bus and the database of an installation are, and who its processes are there."""

    nats_url: str = field(repr=False)
    admin_dsn: str = field(repr=False)
    credentials: Credentials
    own_bus: bool
    """The bus is the embedded one, which knows our identities."""
    nats_seed: str | None = field(default=None, repr=False)
    """For a bus of the user's own."""

    @property
    def nats_address(self) -> str:
        """The bus's address as it may be shown: without a password in it."""
        return ",".join(re.sub(r"//[^@/]*@", "//", url) for url in self.nats_url.split(","))

    def seed_of(self, identity: str) -> str | None:
        return self.credentials.seeds[identity] if self.own_bus else self.nats_seed

    def dsn_of(self, role: str, password_of: str) -> str:
        """The database's address for one role."""
        parts = urlsplit(self.admin_dsn)
        host = parts.netloc.rpartition("@")[2]
        who = f"{quote(role, safe='')}:{quote(self.credentials.passwords[password_of], safe='')}"
        return urlunsplit(parts._replace(netloc=f"{who}@{host}"))

    def environment_of(self, member: Member) -> dict[str, str]:
        """Return what a process of this service needs: on a secured bus its own seed and nobody else's."""
        seed = self.credentials.seeds[member.identity] if self.own_bus or self.nats_seed else None
        return {
            "WAYLINE_NATS_URL": self.nats_url,
            **({"WAYLINE_NATS_SEED": seed} if seed else {}),
            **({"WAYLINE_NATS_ACCOUNTS": "true"} if self.own_bus else {}),
            **({"WAYLINE_POSTGRES_DSN": self.dsn_of(member.role, member.identity)} if member.schema else {}),
        }

    def environments(self) -> dict[str, dict[str, str]]:
        """The same for every service, for who administers, and for Grafana."""
        seed = self.seed_of(ADMIN)
        admin = {"WAYLINE_NATS_URL": self.nats_url, "WAYLINE_POSTGRES_DSN": self.admin_dsn}
        return {
            **{member.identity: self.environment_of(member) for member in MEMBERS},
            ADMIN: {**admin, **({"WAYLINE_NATS_SEED": seed} if seed else {})},
            GRAFANA: {"WAYLINE_POSTGRES_DSN": self.dsn_of("wayline_grafana", GRAFANA)},
        }


def write_environments(installation: Installation, place: Place) -> None:
    """Keep, one file each, what the processes of the installation need."""
    for name, environment in place.environments().items():
        lines = [f"{key}={value}\n" for key, value in environment.items()]
        write_private(installation.credentials / f"{name}.env", "".join(lines))


def read_environment(installation: Installation, name: str) -> Mapping[str, str]:
    """What `write_environments` kept for one process; empty when nothing was."""
    try:
        lines = (installation.credentials / f"{name}.env").read_text().splitlines()
    except FileNotFoundError:
        return {}
    except PermissionError:
        raise DataDirInvalid(path=installation.credentials, cause="it belongs to another user") from None
    return dict(line.split("=", 1) for line in lines if "=" in line)
