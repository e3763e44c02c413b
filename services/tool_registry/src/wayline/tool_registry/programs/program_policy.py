"""How the programs of one tenant run: confined, or with our own rights where the operator chose that."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from wayline.contracts.server_config import ProgramLimits, ServerConfig
from wayline.guarded_http import AddressPolicy
from wayline.tool_registry.errors import NotBegun
from wayline.tool_registry.programs.allowed_programs import VARIABLE, AllowedCommands, ProgramsMode, granted
from wayline.tool_registry.programs.confined_program import TOO_MUCH_MEMORY
from wayline.tool_registry.programs.jails import CACHES, JailLimits, Jails, Network

KEPT = ("/tmp", "/dev", "/proc", "/program")
PATH_SHOWN_MAX = 200
STATUS = "the program ended with status "


@dataclass(frozen=True)
class Place:
    """Where a program is started."""

    prefix: tuple[str, ...]
    """The words before it and its arguments."""
    env: dict[str, str]
    """What it sees beside its own variables."""
    cwd: str


@dataclass(frozen=True)
class ProgramPolicy:
    """What the programs of a tenant may use."""

    tenant: str
    jails: Jails
    mode: ProgramsMode = "isolated"
    most: ProgramLimits = field(default_factory=ProgramLimits)
    """The installation's limits, which a server's own ones are within."""
    processes_max: int = 0
    cpu_s: int = 0
    tmp_mb: int = 64
    commands: AllowedCommands = ()
    proxy: str | None = field(default=None, repr=False)
    ca_file: str | None = None

    @asynccontextmanager
    async def place(self, server: ServerConfig, program: str) -> AsyncIterator[Place]:
        """Hold the place where a server's program runs. Raises NotBegun where it may not or cannot."""
        if self.mode == "off":
            raise NotBegun("programs of tenants do not run here: WAYLINE_TOOL_REGISTRY_PROGRAMS is off")
        if self.mode == "unconfined":
            with tempfile.TemporaryDirectory(prefix="wayline-", ignore_cleanup_errors=True) as scratch:
                yield Place((), self._unconfined(scratch), scratch)
            return
        await self.jails.require()
        hosts, reads = granted((server.command or "", *server.args), self.commands)
        limits = JailLimits(
            memory_mb=least(server.limits.memory_mb, self.most.memory_mb),
            processes_max=self.processes_max,
            cpu_s=self.cpu_s,
            tmp_mb=self.tmp_mb,
        )
        network = self._network(server.hosts, hosts)
        async with self.jails.jail(self.tenant, program, limits, named=reads, network=network) as jail:
            yield Place(jail.prefix, jail.env, "/")

    def explained(self, why: str, server: ServerConfig) -> str:
        """Return how a program ended, with what its jail may have to do with it."""
        if self.mode != "isolated" or not why.startswith(STATUS):
            return why
        if why == f"{STATUS}{TOO_MUCH_MEMORY}":
            return "the program used more memory than it may"
        hosts, reads = granted((server.command or "", *server.args), self.commands)
        shown = (*self.jails.shown(server.command or "", reads), *KEPT)
        # By its name alone: whether there is such a file is not told.
        unseen = [one for one in server.args if os.path.isabs(one) and not any(map(Path(one).is_relative_to, shown))]
        if unseen:
            return f"{why}; it does not see {unseen[0][:PATH_SHOWN_MAX]}, which no entry of {VARIABLE} lets it read"
        return why if server.hosts or hosts else f"{why}; it has no network: `hosts` names what it may reach"

    def _network(self, asked: Sequence[str], granted_hosts: Sequence[str]) -> Network | None:
        """Return what a program may reach: public hosts that its server names, and what the operator opens for it."""
        hosts = (*asked, *granted_hosts)
        opened = [one for one in granted_hosts if not one.startswith("*.")]
        return Network(AddressPolicy.of(opened), hosts, proxy=self.proxy, ca_file=self.ca_file) if hosts else None

    def _unconfined(self, scratch: str) -> dict[str, str]:
        """Return what a program sees that runs with our rights: a home of its own, and its tenant's downloads."""
        temporary, downloads = Path(scratch, "tmp"), self.jails.downloads_of(self.tenant)
        temporary.mkdir()
        caches = {name: str(downloads / place) for name, place in CACHES.items()}
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": scratch, "TMPDIR": str(temporary), **caches}


def least(*limits: int | None) -> int:
    """Return the lowest of some limits; 0: there is none."""
    return min((one for one in limits if one is not None), default=0)
