"""Start processes by forking one that has already imported what they run: imports take longest of a start.

A forked process is a process like any other, with its own session, environment, directory and log, to be killed, frozen
and drained. It dies with the fork server, which ends with the process that started it.

The workers of a whole run need not import the same modules five times: their fork servers are forked from one process,
`share_fork_server`, that has imported them.
"""

from __future__ import annotations

import contextlib
import ctypes
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from wayline.embedded.process import LOG_MODE, Child, children_of, die_with, is_alive, spawn

REQUEST_BYTES_MAX = 64 * 1024
NUMBER_BYTES = 4
FDS_MAX = 4
START_WITHIN_S = 30.0
END_WITHIN_S = 5.0
POLL_S = 0.02
SHARED = "WAYLINE_TESTS_FORK_SERVER"
"""Says at which socket a process forks fork servers, where there is one."""
PR_SET_CHILD_SUBREAPER = 36


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
    address = os.environ.get(SHARED)
    return _ForkServer() if address is None else _SharedForkServer(address)


@cache
def _program_server() -> _ForkServer:
    """Return one that imports nothing, and so stays small."""
    return _ForkServer()


class _ForkServer:
    """The fork server of this process."""

    def __init__(self) -> None:
        self._socket, self._process = self._start()
        self._lock = threading.Lock()
        self._forked: dict[_Forked, str] = {}
        """What has not ended yet, and what it runs."""

    def _start(self) -> tuple[socket.socket, subprocess.Popen[bytes] | None]:
        """Start the server; return the connection to it, and the process where it is one of ours."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__, "serve", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # Ctrl-C in a terminal reaches the test process alone.
                start_new_session=True,
            )
        return ours, process

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
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self._socket.close()
        if self._process is not None:
            self._process.wait(END_WITHIN_S)
        return left

    def _left(self) -> list[str]:
        """Return what still runs of what was forked."""
        return [f"{forked.pid} {runs}" for forked, runs in self._running().items()]


class _SharedForkServer(_ForkServer):
    """One that a process forked which many share: what its processes leave behind is its own to end."""

    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()
        self.pid = _number(self._socket.recv(NUMBER_BYTES))

    def _start(self) -> tuple[socket.socket, None]:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(self._address)
        return connection, None

    def _left(self) -> list[str]:
        forked = {one.pid for one in self._running()}
        orphans = [pid for pid in children_of(self.pid) if pid not in forked and is_alive(pid)]
        return [*super()._left(), *(f"{pid} left by a forked process" for pid in orphans)]

    def end(self) -> list[str]:
        left = super().end()
        for line in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line.partition(" ")[0]), signal.SIGKILL)
        return left


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
        report = reports.pop(pid, None)
        if report is None:
            # One that a forked process has left behind.
            continue
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
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


@contextlib.contextmanager
def share_fork_server(address: Path, imports: Sequence[str]) -> Iterator[None]:
    """Run a process that imports this once, and forks the fork servers of this process's children."""
    argv = [sys.executable, "-m", __name__, "share", str(address), str(os.getpid()), *imports]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + START_WITHIN_S
    while not address.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(POLL_S)
    if address.exists():
        os.environ[SHARED] = str(address)
    try:
        yield
    finally:
        os.environ.pop(SHARED, None)
        process.kill()
        process.wait(END_WITHIN_S)
        address.unlink(missing_ok=True)


def _share(address: str, parent: str, *imports: str) -> socket.socket:
    """Fork a fork server for each connection; in it, return the connection."""
    die_with(int(parent), signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.umask(0o077)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        _import([*imports])
        gc.collect()
        gc.freeze()
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
                connection.send(_bytes(os.getpid()))
                return connection
            connection.close()


def main() -> None:
    """Serve the connection whose number is given, share what is imported, or do the work that is given."""
    if sys.argv[1] == "run":
        return _run(**json.loads(sys.argv[2]))
    shares = sys.argv[1] == "share"
    with _share(*sys.argv[2:]) if shares else socket.socket(fileno=int(sys.argv[2])) as requests:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        work = _serve(requests)
    if work is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        die_with(os.getppid(), signal.SIGKILL)
        os.setsid()
        work()


if __name__ == "__main__":
    main()
