"""Services as processes of their own, for a test to kill, freeze, drain and start again."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import orjson

from wayline.chassis import Failpoint
from wayline.embedded.process import Child, spawn
from wayline.testkit.databases import SCHEMAS
from wayline.testkit.service_starts import start_service
from wayline.testkit.waiting import until

START_WITHIN_S = 60.0
EMBEDS = "WAYLINE_RETRIEVAL_EMBEDDING_MODEL"
"""The one variable of ours that processes of a test inherit: most are not about meaning."""
POOL_SIZE = 3
"""Connections of a service to Postgres: each costs 25 ms, which is as long as many a test works."""
FEW_CONNECTIONS = {f"WAYLINE_{name.upper()}_POOL_SIZE": str(POOL_SIZE) for name in SCHEMAS}
"""What a process of a test is told, and a service in its process likewise."""
END_WITHIN_S = 30.0
LOG_TAIL_LINES = 40


@dataclass
class ServiceProcess:
    """One service as `python -m wayline.<name>`; it dies with the test run."""

    name: str
    log: Path
    child: Child
    failpoint: Failpoint | None = None

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def exited(self) -> bool:
        return self.child.exited

    @property
    def killed(self) -> bool:
        """Return whether it died of SIGKILL: by us, or by its own failpoint."""
        return self.child.process.poll() == -signal.SIGKILL

    @property
    def tail(self) -> str:
        """Return the end of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])

    async def ready(self) -> Self:
        """Wait until it serves; one whose failpoint is reached while it starts is ready too."""
        await until(self._ready, within=START_WITHIN_S, why=f"{self.name} is ready; it printed:\n{self.tail}")
        return self

    def _ready(self) -> bool:
        if self.exited:
            armed = self.failpoint is not None and self.killed
            assert armed, f"{self.name} ended with {self.child.process.returncode} at its start:\n{self.tail}"
            return True
        return b"ready" in self.log.read_bytes()

    def kill(self) -> None:
        """End it as a crash would (SIGKILL)."""
        self.tell(signal.SIGKILL)

    def pause(self) -> None:
        """Freeze the process: its connections stay open and nothing answers (SIGSTOP)."""
        self.tell(signal.SIGSTOP)

    def resume(self) -> None:
        self.tell(signal.SIGCONT)

    def drain(self) -> None:
        """Send SIGTERM: the first drains the process, a second one ends it at once."""
        self.tell(signal.SIGTERM)

    def tell(self, what: signal.Signals) -> None:
        if not self.exited:
            self.child.process.send_signal(what)

    async def ended(self, within: float = END_WITHIN_S) -> int:
        """Wait for the end of the process, and return its status."""
        await until(lambda: self.exited, within=within, why=f"{self.name} ends")
        assert self.child.process.returncode is not None
        return self.child.process.returncode


@dataclass
class Fleet:
    """The processes of one platform, and what each kind of service is started with."""

    nats_url: str
    directory: Path
    env: dict[str, dict[str, str]] = field(default_factory=dict)
    """More environment, by service name."""
    seeds: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The identity of each service, on a bus that knows identities."""
    processes: list[ServiceProcess] = field(default_factory=list)

    def set(self, name: str, **env: Any) -> None:
        """Give a service more environment from its next start on; what is not text goes as JSON."""
        encoded = {key: value if isinstance(value, str) else orjson.dumps(value).decode() for key, value in env.items()}
        self.env.setdefault(name, {}).update(encoded)

    def spawn(
        self, name: str, failpoint: Failpoint | None = None, *, nth: int = 1, env: Mapping[str, str] | None = None
    ) -> ServiceProcess:
        """Start a service without waiting for it, armed with a failpoint or not."""
        log = self.directory / f"{name}-{len(self.processes)}.log"
        armed = {"WAYLINE_FAILPOINT": f"{failpoint}:{nth}" if failpoint else ""}
        child = start_service(name, cwd=self.directory, log=log, env=self.environment(name, {**armed, **(env or {})}))
        self.processes.append(ServiceProcess(name, log, child, failpoint))
        return self.processes[-1]

    def spawn_build(self, name: str, python: Path) -> ServiceProcess:
        """Start a service of another build, by the Python of its environment, without waiting for it."""
        log = self.directory / f"{name}-{len(self.processes)}.log"
        child = spawn(
            [str(python), "-m", f"wayline.{name}"],
            cwd=self.directory,
            log=log,
            env=self.environment(name, {}),
            death_signal=signal.SIGKILL,
        )
        self.processes.append(ServiceProcess(name, log, child))
        return self.processes[-1]

    def environment(self, name: str, more: Mapping[str, str]) -> dict[str, str]:
        """Return what a process of a service is started with."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("WAYLINE_") or key == EMBEDS}
        identity = (
            {"WAYLINE_NATS_SEED": self.seeds[name], "WAYLINE_NATS_ACCOUNTS": "true"} if name in self.seeds else {}
        )
        return {
            **inherited,
            **FEW_CONNECTIONS,
            "PYTHONUNBUFFERED": "1",
            "WAYLINE_NATS_URL": self.nats_url,
            **identity,
            **self.env.get(name, {}),
            **more,
        }

    async def start(self, name: str, failpoint: Failpoint | None = None, **more: Any) -> ServiceProcess:
        """Start a service and wait until it serves."""
        return await self.spawn(name, failpoint, **more).ready()

    async def ensure(self, *names: str) -> None:
        """Start processes until each of these services has at least one."""
        for process in [self.spawn(name) for name in names if not self.running(name)]:
            await process.ready()

    def running(self, name: str) -> list[ServiceProcess]:
        return [process for process in self.processes if process.name == name and not process.exited]

    async def stop(self, *names: str) -> None:
        """Kill every process of these services, or of all, and wait until they are gone."""
        going = [process for process in self.processes if not names or process.name in names]
        for process in going:
            process.kill()
        for process in going:
            await process.ended()
