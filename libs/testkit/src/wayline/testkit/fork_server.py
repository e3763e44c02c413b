"""Start processes by forking one that has already imported what they run: imports take longest of a start.

A forked process is a process like any other, with its own session, environment, directory and log, to be killed, frozen
and drained. It dies with the fork server, which ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from wayline.embedded.process import LOG_MODE, Child, die_with, spawn

REQUEST_BYTES_MAX = 64 * 1024
NUMBER_BYTES = 4
FDS_MAX = 4
END_WITHIN_S = 5.0
POLL_S = 0.02


def fork(
    target: str,
    *args: Any,
    log: Path,
    imports: Sequence[str] = (),
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Child:
    """Call `module:function` with JSON values in a process of its own, which prints into `log`.

    The first call that names a module, in `imports` or as the target's, waits for its import. Where forking is not safe
    (all but Linux) the process is a new Python.
    """
    # The log is there at once, for tests that look for its first line.
    log.touch(LOG_MODE)
    directory, variables = cwd or Path.cwd(), dict(os.environ if env is None else env)
    work = {"target": target, "args": args, "log": str(log), "cwd": str(directory), "env": variables}
    if sys.platform != "linux":
        argv = [sys.executable, "-m", __name__, "run", json.dumps(work)]
        return spawn(argv, cwd=directory, log=log, death_signal=signal.SIGKILL)
    return Child(_fork_server().fork({"work": work, "imports": [target.partition(":")[0], *imports]}))


def fork_program(argv: Sequence[str], *, log: Path, cwd: Path, keep_fds: Sequence[int] = ()) -> Child:
    """Start a program from a small process: to fork one of tests, of half a gigabyte, takes fifty times as long."""
    if sys.platform != "linux":
        return spawn(argv, cwd=cwd, log=log, death_signal=signal.SIGKILL, keep_fds=keep_fds)
    log.touch(LOG_MODE)
    target, variables = f"{__name__}:become", dict(os.environ)
    work = {"target": target, "args": argv, "log": str(log), "cwd": str(cwd), "env": variables}
    return Child(_program_server().fork({"work": work, "imports": []}, keep_fds))


def become(*argv: str) -> None:
    """Run a program in place of this process."""
    os.execv(argv[0], argv)


def end_fork_server() -> list[str]:
    """End the fork servers of this process, and what they forked that does not end by itself; return what that was."""
    left: list[str] = []
    for server in (_fork_server, _program_server):
        if server.cache_info().currsize:
            left += server().end()
            server.cache_clear()
    return left


@cache
def _fork_server() -> _ForkServer:
    return _ForkServer()


@cache
def _program_server() -> _ForkServer:
    """Return one that imports nothing, and so stays small."""
    return _ForkServer()


class _ForkServer:
    """The fork server of this process."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, "serve", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # Ctrl-C in a terminal reaches the test process alone.
                start_new_session=True,
            )
        self._lock = threading.Lock()
        self._forked: dict[_Forked, str] = {}
        """What has not ended yet, and what it runs."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def fork(self, request: dict[str, Any], keep_fds: Sequence[int] = ()) -> _Forked:
        """Have a process forked, which holds these files open too."""
        status, theirs = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._socket, [json.dumps(request).encode()], [theirs, *keep_fds])
        finally:
            os.close(theirs)
        pid = os.read(status, NUMBER_BYTES)
        assert pid, f"the fork server ended when it was asked for {request['work']['target']}"
        os.set_blocking(status, False)
        self._forked = self._running()
        forked = _Forked(_number(pid), status)
        self._forked[forked] = f"{request['work']['target']}{tuple(request['work']['args'])}"
        return forked

    def _running(self) -> dict[_Forked, str]:
        return {forked: runs for forked, runs in self._forked.items() if forked.poll() is None}

    def end(self) -> list[str]:
        """Close the connection, which ends it, and with it what runs; return that."""
        deadline = time.monotonic() + END_WITHIN_S
        while (left := self._running()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self._socket.close()
        self._process.wait(END_WITHIN_S)
        return [f"{forked.pid} {runs}" for forked, runs in left.items()]


@dataclass(eq=False)
class _Forked:
    """A forked process, as `subprocess.Popen` would show it."""

    pid: int
    report: int = field(repr=False)
    """Where the fork server writes its status when it has ended."""
    returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            with contextlib.suppress(BlockingIOError):
                status = os.read(self.report, NUMBER_BYTES)
                # Nothing at all: the fork server is gone, and took it along.
                self.returncode = _number(status) if status else -signal.SIGKILL
                os.close(self.report)
        return self.returncode

    def send_signal(self, sig: int, /) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)


def _bytes(number: int) -> bytes:
    return number.to_bytes(NUMBER_BYTES, "little", signed=True)


def _number(written: bytes) -> int:
    return int.from_bytes(written, "little", signed=True)


def _serve(requests: socket.socket) -> Callable[[], None] | None:
    """Fork on request until the connection closes; in a forked process, return what it is to do."""
    reports: dict[int, int] = {}
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == woken:
                    with contextlib.suppress(BlockingIOError):
                        os.read(woken, REQUEST_BYTES_MAX)
                    _reap(reports)
                    continue
                body, [*fds], _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, FDS_MAX)
                if not body:
                    return None
                request = json.loads(body)
                report, *kept = fds
                _import(request["imports"])
                # What is here stays: a collection in a forked process need not touch, and so copy, its pages.
                gc.freeze()
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for fd in (woken, wake, report, requests.detach(), *reports.values()):
                        os.close(fd)
                    for fd in kept:
                        os.set_inheritable(fd, True)
                    return lambda: _run(**request["work"])
                for fd in kept:
                    os.close(fd)
                os.write(report, _bytes(pid))
                reports[pid] = report


def _import(modules: list[str]) -> None:
    """Import what is to be run; where that fails, the forked process tries it again and says why."""
    for module in modules:
        with contextlib.suppress(Exception):
            import_module(module)


def _reap(reports: dict[int, int]) -> None:
    """Report the status of each process that has ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        report = reports.pop(pid)
        with contextlib.suppress(BrokenPipeError):
            os.write(report, _bytes(os.waitstatus_to_exitcode(status)))
        os.close(report)


def _run(target: str, args: list[Any], log: str, cwd: str, env: dict[str, str]) -> None:
    """Do the work of a new process, and end it."""
    os.umask(0o077)
    os.chdir(cwd)
    sink = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, LOG_MODE)
    for place in (1, 2):
        os.dup2(sink, place)
    os.close(sink)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - it stays open
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    module, _, name = target.partition(":")
    status = 1
    try:
        getattr(import_module(module), name)(*args)
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """Serve the connection whose number is given, or do the work that is given."""
    if sys.argv[1] == "run":
        return _run(**json.loads(sys.argv[2]))
    with socket.socket(fileno=int(sys.argv[2])) as requests:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        work = _serve(requests)
    if work is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        die_with(os.getppid(), signal.SIGKILL)
        os.setsid()
        work()


if __name__ == "__main__":
    main()
