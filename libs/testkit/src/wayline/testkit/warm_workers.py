"""The workers of a run are forked from a process that has read all tests: to import them takes ten seconds of CPU.

A worker collects as it always does, and finds every module imported. Where forking is not safe (all but Linux) each is
a Python of its own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from wayline.embedded.process import die_with
from wayline.testkit.fork_server import share_fork_server
from wayline.testkit.server_directory import SHARED
from wayline.testkit.service_starts import ALL

NUMBER_BYTES = 4
ENDED_WITHIN_S = 10.0
WHOLE = "tests"
"""The folder of all tests, as its run names it."""
AT_FIRST_CALL = ("anthropic", "wayline.testkit.gateway_routes")
"""What each worker of a whole run would import in the middle of a job, for 2.6 s, and read for its first gateway."""
SERVER = pytest.StashKey["_WarmServer"]()
ENDS = pytest.StashKey[contextlib.ExitStack]()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the process, before xdist starts its workers."""
    config = session.config
    if sys.platform == "linux" and config.pluginmanager.hasplugin("dsession"):
        ends = config.stash[ENDS] = contextlib.ExitStack()
        if WHOLE in config.args:
            # Before the workers, which inherit its address.
            ends.enter_context(share_fork_server(Path(os.environ[SHARED]) / "fork-server", ALL))
        server = config.stash[SERVER] = _WarmServer(["-m", config.option.markexpr, *config.args])
        server.start_workers_of_xdist()


def pytest_unconfigure(config: pytest.Config) -> None:
    if (server := config.stash.get(SERVER, None)) is not None:
        server.end()
        config.stash[ENDS].close()


class _WarmServer:
    """The process that has read all tests."""

    def __init__(self, collected: list[str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno()), *collected], pass_fds=[theirs.fileno()]
            )

    def start_workers_of_xdist(self) -> None:
        """Have execnet, through which xdist starts its workers, ask this process for them."""
        from execnet import gateway_io
        from execnet.gateway_base import Popen2IO

        self._create_io = gateway_io.create_io

        class ForkedIO(Popen2IO):
            popen: _Worker

            def wait(self) -> int:
                return 0

            def kill(self) -> None:
                self.popen.kill()

        def create_io(spec: Any, execmodel: Any) -> Any:
            if not spec.popen or spec.python:
                return self._create_io(spec, execmodel)
            theirs_in, ours_out = os.pipe()
            ours_in, theirs_out = os.pipe()
            socket.send_fds(self._socket, [b"fork"], [theirs_in, theirs_out])
            os.close(theirs_in)
            os.close(theirs_out)
            io = ForkedIO(os.fdopen(ours_out, "wb", 0), os.fdopen(ours_in, "rb"), execmodel)
            io.popen = _Worker(int.from_bytes(self._socket.recv(NUMBER_BYTES), "little"))
            return io

        gateway_io.create_io = create_io

    def end(self) -> None:
        """End the process, and with it any worker that has not ended."""
        from execnet import gateway_io

        gateway_io.create_io = self._create_io
        self._socket.close()
        try:
            self._process.wait(ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@dataclass(frozen=True)
class _Worker:
    pid: int

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _serve(requests: socket.socket) -> tuple[int, int] | None:
    """Fork on request until the connection closes; in a forked process, return what it reads from and writes to."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Ctrl-C in a terminal is for those that run tests.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        body, fds, _, _ = socket.recv_fds(requests, NUMBER_BYTES, 2)
        if not body:
            # Since their ends are ignored, this fails once all have ended.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, 0)
            return None
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            die_with(parent, signal.SIGKILL)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            requests.close()
            return fds[0], fds[1]
        for fd in fds:
            os.close(fd)
        requests.send(pid.to_bytes(NUMBER_BYTES, "little"))


def _work(reads: int, writes: int) -> None:
    """Be what execnet starts: a Python that runs the first line that it is told."""
    os.dup2(reads, 0)
    os.dup2(writes, 1)
    os.close(reads)
    os.close(writes)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - it stays open
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    exec(eval(sys.stdin.readline()), {"__name__": "__main__"})


class _ForgetUnread:
    """Forgets each module that could not be read, which pytest leaves half made: workers would find no tests in it.

    They read it again, and report why they cannot.
    """

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        unread = str(node.path)
        for name in [name for name, module in sys.modules.items() if getattr(module, "__file__", None) == unread]:
            del sys.modules[name]


def main() -> None:
    """Read the tests that are named, and fork workers until nobody asks for more."""
    number, *collected = sys.argv[1:]
    with socket.socket(fileno=int(number)) as requests:
        printed = os.dup(1)
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *collected], plugins=[_ForgetUnread()])
        os.dup2(printed, 1)
        if WHOLE in collected:
            for module in AT_FIRST_CALL:
                import_module(module)
        gc.collect()
        gc.freeze()
        work = _serve(requests)
    if work is not None:
        _work(*work)


if __name__ == "__main__":
    main()
