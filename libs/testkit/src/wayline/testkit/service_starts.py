"""Start services as processes: forked from one that has imported them all, for their imports take longest of a start.

A forked service is a process like any other, with its own environment, session and log, to be killed, frozen and
drained. Where forking is not safe (all but Linux) it begins with `python -m`.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from wayline.chassis import failpoints
from wayline.embedded.process import LOG_MODE, Child, die_with, spawn

IMPORTED = ("gateway", "router", "executor", "tool_registry", "retrieval", "tracing")


def start_service(name: str, *, cwd: Path, log: Path, env: Mapping[str, str]) -> Child:
    """Start a service that dies with this process; what it prints goes into `log`."""
    if sys.platform != "linux" or name not in IMPORTED:
        argv = [sys.executable, "-m", f"wayline.{name}"]
        return spawn(argv, cwd=cwd, log=log, death_signal=signal.SIGKILL, env=env)
    # The log is there at once, for tests that look for its first line.
    log.touch(LOG_MODE)
    process = _fork_server().Process(target=_run, args=(name, cwd, log, dict(env)), daemon=True)
    process.start()
    return Child(_Forked(process))


@cache
def _fork_server() -> ForkServerContext:
    context = get_context("forkserver")
    context.set_forkserver_preload([f"wayline.{name}.app" for name in IMPORTED])
    return context


@dataclass(frozen=True)
class _Forked:
    """A process of the fork server, as `subprocess.Popen` would show it."""

    process: ForkServerProcess

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def poll(self) -> int | None:
        return self.process.exitcode

    def send_signal(self, sig: int, /) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)


def _run(name: str, cwd: Path, log: Path, env: dict[str, str]) -> None:
    """Run a service in a process that was forked for it."""
    die_with(os.getppid(), signal.SIGKILL)
    os.setsid()
    os.umask(0o077)
    os.chdir(cwd)
    sink = os.open(log, os.O_WRONLY | os.O_APPEND)
    for place in (1, 2):
        os.dup2(sink, place)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - it stays open
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    failpoints.arm(env.get("WAYLINE_FAILPOINT", ""))
    sys.argv = [name]
    runpy.run_module(f"wayline.{name}", run_name="__main__", alter_sys=True)
