"""Run a server as a child process that ends when we do."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

POLL_S = 0.005
KILL_WAIT_S = 10.0
FREEZE_WAIT_S = 2.0
STAT_BYTES_MAX = 4096
PR_SET_PDEATHSIG = 1
LOG_MODE = 0o600

# Loaded before any fork: between fork and exec nothing may take a lock that another thread held.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Account:
    """The operating-system user a child runs under."""

    name: str
    uid: int
    gid: int


class Process(Protocol):
    """What is asked of a process: `subprocess.Popen`, or one that another process has forked for us."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None: ...

    def send_signal(self, sig: int, /) -> None: ...


@dataclass(frozen=True)
class Child:
    """A running server and the processes it started."""

    process: Process

    @property
    def pid(self) -> int:
        """Return the process id of the server itself."""
        return self.process.pid

    @property
    def exited(self) -> bool:
        """Return whether the server is gone, and reap it."""
        return self.process.poll() is not None

    async def end(self, how: signal.Signals, *, within_s: float) -> bool:
        """Ask the server to end; false when it still runs after `within_s`."""
        self.signal_all(signal.SIGCONT)
        if not self.exited:
            self.process.send_signal(how)
        return await self.wait(within_s=within_s)

    async def wait(self, *, within_s: float) -> bool:
        """Wait until the process has ended by itself; false when it still runs after `within_s`."""
        return await _wait(lambda: self.exited, within_s=within_s)

    async def kill(self) -> None:
        """Take the server and its own children down as a crash of the machine would."""
        # Frozen first, so that it starts no child between the listing and the kill.
        _signal(self.pid, signal.SIGSTOP)
        everyone = [self.pid, *children_of(self.pid)]
        for pid in everyone:
            _signal(pid, signal.SIGKILL)
        await _wait(lambda: self.exited and not any(map(is_alive, everyone)), within_s=KILL_WAIT_S)

    def freeze(self) -> None:
        """Stop the server and every process it started; when this returns none of them runs (Linux; elsewhere soon)."""
        self.signal_all(signal.SIGSTOP)
        deadline = time.monotonic() + FREEZE_WAIT_S
        while any((stat := _stat(pid)) and stat[0] in "RSD" for pid in [self.pid, *children_of(self.pid)]):
            if time.monotonic() > deadline:
                return
            time.sleep(POLL_S)

    def signal_all(self, what: signal.Signals) -> None:
        """Send a signal to the server and to every process it started."""
        if not self.exited:
            for pid in [self.pid, *children_of(self.pid)]:
                _signal(pid, what)


def spawn(
    argv: Sequence[str | Path],
    *,
    cwd: Path,
    log: Path,
    death_signal: signal.Signals,
    account: Account | None = None,
    env: Mapping[str, str] | None = None,
    keep_fds: Sequence[int] = (),
) -> Child:
    """Start a child that gets `death_signal` when the calling thread ends: call it from a thread that stays."""
    # A server's log may hold what its clients sent: statements of Postgres, for instance.
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, LOG_MODE), "ab") as sink:
        os.fchmod(sink.fileno(), LOG_MODE)
        process = subprocess.Popen(
            [str(word) for word in argv],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            # Ctrl-C in a terminal reaches us alone: we drain, then stop the servers in order.
            start_new_session=True,
            pass_fds=keep_fds,
            # Safe with threads: it makes system calls only, of a library that is loaded already.
            preexec_fn=_before_exec(account, death_signal),  # noqa: PLW1509
        )
    return Child(process)


def children_of(parent: int) -> list[int]:
    """Return the running processes that `parent` started (Linux; elsewhere none are known)."""
    present = os.listdir("/proc") if sys.platform == "linux" else []
    stats = {int(name): _stat(int(name)) for name in present if name.isdigit()}
    return [pid for pid, stat in stats.items() if stat and int(stat[1]) == parent and stat[0] not in "ZX"]


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    if pid <= 0:
        return False
    if sys.platform == "linux":
        stat = _stat(pid)
        return stat is not None and stat[0] not in "ZX"
    return _signal(pid, 0)


def _stat(pid: int) -> list[str] | None:
    """Return the fields of a process's line in /proc after its name: state, parent and the rest."""
    try:
        # Without pathlib and text: this is asked of every process there is.
        opened = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(opened, STAT_BYTES_MAX).decode(errors="replace").rpartition(")")[2].split() or None
    except OSError:
        return None
    finally:
        os.close(opened)


def _signal(pid: int, what: int) -> bool:
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _before_exec(account: Account | None, death_signal: signal.Signals) -> Callable[[], None]:
    parent = os.getpid()

    def before_exec() -> None:
        if account is not None:
            _become(account)
        os.umask(0o077)
        # After setuid: a change of user clears the death signal.
        die_with(parent, death_signal)

    return before_exec


def die_with(parent: int, how: signal.Signals) -> None:
    """Have the kernel end this process when its parent ends (Linux; elsewhere nothing does)."""
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, int(how))
    if os.getppid() != parent:
        os._exit(1)


def _become(account: Account) -> None:
    os.setgroups([])
    os.setgid(account.gid)
    os.setuid(account.uid)


async def _wait(done: Callable[[], bool], *, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not done():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True
