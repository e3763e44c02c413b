"""The jails of confined programs: what each sees, where it writes, and the command line that starts it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from wayline.guarded_http import AddressPolicy
from wayline.guarded_http.outbound import Outbound
from wayline.guarded_http.proxy import GuardedProxy
from wayline.tool_registry.errors import CannotIsolate
from wayline.tool_registry.programs import confined_program, program_guard
from wayline.tool_registry.programs.confined_program import Jail
from wayline.tool_registry.programs.program_network import PORT, program_network, proxy_environment
from wayline.tool_registry.programs.shown_paths import is_below, shown_paths, system_links, visible_search_path

HOME: Final = "/program/home"
CACHE: Final = "/program/cache"
TEMPORARY: Final = "/tmp"
CACHES = {"npm_config_cache": "npm", "UV_CACHE_DIR": "uv", "UV_PYTHON_INSTALL_DIR": "python", "UV_TOOL_DIR": "tools"}
"""Where npx and uvx keep what they have downloaded: each start of a program would download it again."""
USERS_FROM: Final = 1 << 30
USERS_TO: Final = 1 << 31
"""The users that tenants' programs run as: above all that a system gives to people, services and containers."""
SMALL_USERS_FROM: Final = 20_000
"""Where there are fewer users, as in a container of a rootless engine."""
TRIED_S: Final = 20.0
TRY_AGAIN_S: Final = 60.0
"""How long a trial that failed is believed: a machine may only have been too busy for it, or be set up otherwise."""
TRIAL: Final = "/bin/true"
IDLE_S: Final = 300.0
"""How long a connection of a program through its proxy may be silent."""


@dataclass(frozen=True)
class JailLimits:
    """What the programs of a jail may use together; 0: there is no limit."""

    memory_mb: int = 0
    processes_max: int = 0
    cpu_s: int = 0
    tmp_mb: int = 64


TRIAL_LIMITS = JailLimits(memory_mb=256, processes_max=512, cpu_s=60)


@dataclass(frozen=True)
class Network:
    """What the programs of a jail may reach, through a proxy."""

    policy: AddressPolicy
    hosts: tuple[str, ...] | None = None
    """Names, `*.` before one for all below it; None: whatever the policy allows."""
    bytes_max: int | None = None
    proxy: str | None = field(default=None, repr=False)
    """The installation's own, through which the internet is reached."""
    ca_file: str | None = None


@dataclass(frozen=True)
class OpenJail:
    """A jail that programs can be started in, one after the other."""

    prefix: tuple[str, ...]
    """The words before a program and its arguments."""
    home: Path
    """The program's directory, as this process sees it."""
    env: dict[str, str] = field(default_factory=dict[str, str])


class Jails:
    """Makes jails for the programs of tenants, each tenant with a user and with downloads of its own."""

    def __init__(self, downloads: Path, *, reads: Iterable[str] = (), hidden: Iterable[Path] = ()) -> None:
        self._downloads = downloads
        self._reads = tuple(reads)
        self._hidden = tuple(str(one.absolute()) for one in hidden)
        self._trial: asyncio.Task[str | None] | None = None
        self._try_again_at = float("-inf")

    @classmethod
    def by(cls, downloads: Path | None, *, reads: Iterable[str] = ()) -> Jails:
        """Make jails whose downloads are in the user's cache where no directory is named."""
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(
            os.environ.get("HOME") or tempfile.gettempdir(), ".cache"
        )
        # Where `wayline up` keeps credentials: it may be in a directory that the operator shows.
        data = Path(os.environ.get("WAYLINE_DATA_DIR") or ".wayline")
        downloads = downloads or Path(cache, "wayline", "programs")
        return cls(downloads, reads=reads, hidden=[data, downloads])

    async def require(self) -> None:
        """Raises CannotIsolate where no program can be confined here."""
        if (why := await self.why_not()) is not None:
            raise CannotIsolate(why)

    async def why_not(self) -> str | None:
        """Return why this machine cannot confine a program, which is tried until it can; None: it can."""
        if sys.platform != "linux":
            return "only Linux has what isolates them"
        trial = self._trial
        if trial is None or (trial.done() and not _can(trial) and time.monotonic() >= self._try_again_at):
            trial = self._trial = asyncio.create_task(self._tried(), name="trial of an isolated program")
            self._try_again_at = time.monotonic() + TRY_AGAIN_S
        return await asyncio.shield(trial)

    async def _tried(self) -> str | None:
        try:
            async with self.jail("", TRIAL, TRIAL_LIMITS) as jail:
                tried = await asyncio.to_thread(_run, [*jail.prefix, TRIAL])
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        said = tried.stderr.decode(errors="replace").strip()
        return None if tried.returncode == 0 else said or f"a trial ended with status {tried.returncode}"

    @asynccontextmanager
    async def jail(
        self,
        tenant: str,
        program: str,
        limits: JailLimits,
        *,
        named: Iterable[str] = (),
        network: Network | None = None,
    ) -> AsyncIterator[OpenJail]:
        """Hold a jail for a program, whose own directory is deleted at the end."""
        uid = user_of(tenant) if os.geteuid() == 0 else None
        async with AsyncExitStack() as stack:
            scratch = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="wayline-", ignore_cleanup_errors=True))
            )
            stage, home, door = scratch / "stage", scratch / "home", scratch / "door"
            stage.mkdir()
            _own(home, uid)
            downloads = self.downloads_of(tenant, uid)
            # On a thread: it looks at some hundred files.
            shown = await asyncio.to_thread(self.shown, program, named)
            jail: Jail = {
                "stage": str(stage),
                "uid": uid,
                "shown": shown,
                "links": system_links(),
                "kept": {HOME: str(home), CACHE: str(downloads)},
                "hidden": [place for place in self._hidden if any(is_below(place, one) for one in shown)],
                "files": _account_files(os.geteuid() if uid is None else uid),
                "home": HOME,
                "door": None if network is None else str(door),
                "port": PORT,
                "memory_mb": limits.memory_mb,
                "processes_max": limits.processes_max,
                "cpu_s": limits.cpu_s,
                "tmp_mb": limits.tmp_mb,
            }
            if network is not None:
                await stack.enter_async_context(program_network(door, partial(_proxy, network, tenant)))
            env = {
                "PATH": visible_search_path(os.environ.get("PATH", os.defpath), shown),
                "HOME": HOME,
                "TMPDIR": TEMPORARY,
                "LANG": "C.UTF-8",
                **{name: f"{CACHE}/{place}" for name, place in CACHES.items()},
                **(proxy_environment() if network is not None else {}),
            }
            yield OpenJail(confined(jail), home, env)

    def shown(self, program: str, named: Iterable[str]) -> list[str]:
        """Return the files and directories that a program may read."""
        return shown_paths(program, os.environ.get("PATH", os.defpath), (*self._reads, *named))

    def downloads_of(self, tenant: str, uid: int | None = None) -> Path:
        """Return the directory of a tenant's downloads, which no other tenant's program sees."""
        self._downloads.mkdir(parents=True, exist_ok=True, mode=0o700)
        own = self._downloads / _digest(tenant)[:32]
        _own(own, uid)
        return own


def user_of(tenant: str) -> int:
    """Return the user that a tenant's programs run as, where this process is root."""
    number, last = int(_digest(tenant)[:12], 16), _last_user()
    first, end = (USERS_FROM, USERS_TO) if last >= USERS_TO else (SMALL_USERS_FROM, max(SMALL_USERS_FROM + 1, last))
    return first + number % (end - first)


def _can(trial: asyncio.Task[str | None]) -> bool:
    return not trial.cancelled() and trial.exception() is None and trial.result() is None


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIED_S, check=False)


def guarded(prefix: Sequence[str]) -> tuple[str, ...]:
    """Return the words that start a program in a jail under a guard, which ends it with this process."""
    # Limits of a process are the jail's: none of the guard's own.
    return (sys.executable, "-I", "-S", program_guard.__file__, "0", "0", "0", *prefix)


def confined(jail: Jail) -> tuple[str, ...]:
    """Return the words that start a program in a jail: before it and its arguments."""
    # Isolated: neither the environment nor the working directory decides what this Python loads.
    return (sys.executable, "-I", "-S", confined_program.__file__, json.dumps(jail))


def _proxy(network: Network, tenant: str) -> GuardedProxy:
    outbound = Outbound(network.proxy, network.ca_file)
    return GuardedProxy(
        network.policy,
        bytes_max=network.bytes_max,
        hosts=network.hosts,
        idle_s=IDLE_S,
        outbound=outbound,
        owner=tenant,
    )


def _account_files(uid: int) -> dict[str, str]:
    return {
        "/etc/passwd": f"root:x:0:0::/:/bin/false\nprogram:x:{uid}:{uid}::{HOME}:/bin/false\n",
        "/etc/group": f"root:x:0:\nprogram:x:{uid}:\n",
        "/etc/hosts": "127.0.0.1 localhost program\n",
    }


def _own(directory: Path, uid: int | None) -> None:
    """Make a directory that only its user may enter."""
    directory.mkdir(mode=0o700, exist_ok=True)
    if uid is not None and directory.stat(follow_symlinks=False).st_uid != uid:
        os.chown(directory, uid, uid, follow_symlinks=False)


def _last_user() -> int:
    """Return the highest user that there is here: in a container fewer may be."""
    try:
        lines = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
        return max(int(first) + int(count) for first, _, count in lines)
    except (OSError, ValueError):
        return USERS_TO


def _digest(tenant: str) -> str:
    return hashlib.sha256(tenant.encode()).hexdigest()
