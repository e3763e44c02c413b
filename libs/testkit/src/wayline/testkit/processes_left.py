"""No test leaves a process behind: what still runs at the end of a session is named, ended, and fails the run."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from wayline.embedded.process import is_alive
from wayline.testkit.fork_server import end_fork_server

PR_SET_CHILD_SUBREAPER = 36
ENDED_WITHIN_S = 5.0
POLL_S = 0.05
LINE_CHARS_MAX = 300
OWN = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""What Python itself starts once for a process, and ends with it."""
LEFT = pytest.StashKey[list[str]]()
REMEMBERED = "wayline/processes_left"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT] = []
    if not _only_distributes(config):
        _adopt_orphans()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker has found."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    node.config.stash[LEFT].extend(output.get(REMEMBERED, []))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run where a test has left a process running."""
    config, left = session.config, session.config.stash[LEFT]
    if not _only_distributes(config):
        left += [*end_fork_server(), *_end_processes_left()]
    if hasattr(config, "workeroutput"):
        config.workeroutput[REMEMBERED] = left  # type: ignore[attr-defined]
        return
    # Tests that are run again, because they failed, do not make up for what the whole run has left.
    if cache := getattr(config, "cache", None):
        if config.getoption("lf"):
            left += cache.get(REMEMBERED, [])
        else:
            cache.set(REMEMBERED, left)
    if left and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if left := config.stash[LEFT]:
        terminalreporter.section("processes that tests have left running", red=True)
        for line in left:
            terminalreporter.write_line(line)


def _only_distributes(config: pytest.Config) -> bool:
    """Return whether others run the tests, as workers of xdist."""
    return config.pluginmanager.hasplugin("dsession")


def _adopt_orphans() -> None:
    """Become the parent of every process whose parent ends first, so that none can be forgotten (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def _end_processes_left() -> list[str]:
    """Wait until the processes that tests have started are gone; kill those that stay, and return their commands."""
    deadline = time.monotonic() + ENDED_WITHIN_S
    while left := _started():
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_S)
    for pid in left:
        _kill(pid)
    return [f"{pid} {command}" for pid, command in left.items()]


def _started() -> dict[int, str]:
    """Return the command of each running process below this one."""
    parents = {pid: parent for pid in _pids() if (parent := _parent(pid)) is not None}
    ours, found = {os.getpid()}, True
    while found:
        found = {pid for pid, parent in parents.items() if parent in ours} - ours
        ours |= found
    running = {pid: _command(pid) for pid in ours - {os.getpid()} if is_alive(pid)}
    return {pid: command for pid, command in running.items() if not any(own in command for own in OWN)}


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:LINE_CHARS_MAX]
    except OSError:
        return ""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return
