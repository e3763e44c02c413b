"""The life of an embedded server: lock the directory, take the port, start, wait until ready, end."""

import asyncio
import signal
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from wayline.embedded.datadir import DataDirLock, lock_data_dir
from wayline.embedded.errors import StartFailed
from wayline.embedded.ports import free_port, require_free
from wayline.embedded.process import Child

# A crashed server first replays its log: seconds for a large one.
START_WAIT_S = 60.0
STOP_WAIT_S = 15.0
POLL_S = 0.005
LOG_BYTES_MAX = 10_000_000
LOG_TAIL_LINES = 15


class EmbeddedServer(ABC):
    """A server run from a wheel as our child, its data in one directory, its port on loopback only."""

    name: ClassVar[str]
    mark: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]

    def __init__(self, data_dir: Path, *, port: int | None, port_variable: str) -> None:
        self.data_dir = data_dir.absolute()
        self.port = free_port() if port is None else port
        self.log = self.data_dir / f"{self.name.lower()}.log"
        self._port_variable = port_variable
        self._lock: DataDirLock | None = None
        self._child: Child | None = None

    @property
    def running(self) -> bool:
        """Return whether the server process exists."""
        return self._child is not None and not self._child.exited

    @property
    def pid(self) -> int:
        """Return the process id of the running server."""
        return self._running_child().pid

    async def start(self) -> Self:
        """Start the server and return when it accepts connections."""
        if self.running:
            return self
        self._let_go()
        self._lock = await lock_data_dir(self.data_dir, server=self.mark)
        try:
            require_free(self.port, server=self.name, variable=self._port_variable)
            self._rotate_log()
            await self._prepare()
            self._child = self._spawn(self._lock)
            await self._wait_until_ready(self._child)
        except BaseException:
            await self.kill()
            raise
        return self

    async def stop(self) -> None:
        """End the server in order; kill it when it does not end in time."""
        if self._child is not None and not await self._child.end(self.stop_signal, within_s=STOP_WAIT_S):
            await self._child.kill()
        self._let_go()

    async def kill(self) -> None:
        """End the server as a crash would (SIGKILL)."""
        if self._child is not None:
            await self._child.kill()
        self._let_go()

    async def restart(self) -> None:
        """Stop and start again on the same port and data."""
        await self.stop()
        await self.start()

    def pause(self) -> None:
        """Freeze the server: connections stay open and nothing answers (SIGSTOP)."""
        self._running_child().freeze()

    def resume(self) -> None:
        """Let a paused server go on (SIGCONT)."""
        self._running_child().signal_all(signal.SIGCONT)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @abstractmethod
    async def _prepare(self) -> None:
        """Make the data directory ready for `_spawn`."""

    @abstractmethod
    def _spawn(self, lock: DataDirLock) -> Child:
        """Start the process, handing it the lock."""

    @abstractmethod
    async def _is_ready(self, child: Child) -> bool:
        """Return whether connections are served now."""

    async def _wait_until_ready(self, child: Child) -> None:
        deadline = time.monotonic() + START_WAIT_S
        while not await self._is_ready(child):
            if child.exited:
                raise self._start_failed(f"ended at start with status {child.process.returncode}")
            if time.monotonic() > deadline:
                raise self._start_failed(f"was not ready within {START_WAIT_S:.0f} s")
            await asyncio.sleep(POLL_S)

    def _start_failed(self, reason: str) -> StartFailed:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return StartFailed(server=self.name, reason=reason, log=self.log, tail="\n".join(lines[-LOG_TAIL_LINES:]))

    def _rotate_log(self) -> None:
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES_MAX:
            self.log.replace(self.log.with_suffix(".log.1"))

    def _running_child(self) -> Child:
        if self._child is None:
            raise RuntimeError(f"{self.name} is not running: start() it first")
        return self._child

    def _let_go(self) -> None:
        self._child = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
