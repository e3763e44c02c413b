"""Hold a data directory for one server: the kernel forgets the lock when the last holder is gone."""

import asyncio
import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path

from wayline.embedded.errors import DataDirForeign, DataDirTaken
from wayline.embedded.process import is_alive

LOCK_FILE = "lock"
MARK_FILE = "server"
# After a kill -9 of `wayline up` its servers need a moment to end in order.
ORPHAN_WAIT_S = 15.0
POLL_S = 0.01


@dataclass(frozen=True)
class DataDirLock:
    """An exclusive lock on a data directory, inherited by the server through its file descriptor."""

    fd: int

    def release(self) -> None:
        """Give up our share; a server that still runs keeps its own."""
        os.close(self.fd)


async def lock_data_dir(data_dir: Path, *, server: str) -> DataDirLock:
    """Make the directory ours and `server`'s, or say who has it."""
    fd = _open_lock(data_dir, server=server)
    try:
        await _wait_for_lock(fd, data_dir)
        _mark(data_dir, server=server)
        # Only for the message above: the lock, not this number, is the truth, so a stale one does no harm.
        os.pwrite(fd, f"{os.getpid():<20}".encode(), 0)
    except BaseException:
        os.close(fd)
        raise
    return DataDirLock(fd)


def _open_lock(data_dir: Path, *, server: str) -> int:
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        return os.open(data_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except PermissionError as error:
        raise DataDirForeign(data_dir=data_dir, found="another user", wanted=f"{server} run by this one") from error


async def _wait_for_lock(fd: int, data_dir: Path) -> None:
    deadline = time.monotonic() + ORPHAN_WAIT_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = int(os.pread(fd, 20, 0).strip() or 0)
            if is_alive(owner):
                raise DataDirTaken(data_dir=data_dir, holder=f"the running process {owner}") from None
            if time.monotonic() > deadline:
                raise DataDirTaken(data_dir=data_dir, holder="a server that outlived its parent") from None
        await asyncio.sleep(POLL_S)


def _mark(data_dir: Path, *, server: str) -> None:
    mark = data_dir / MARK_FILE
    if not mark.exists():
        mark.write_text(f"{server}\n")
    elif (found := mark.read_text().strip()) != server:
        raise DataDirForeign(data_dir=data_dir, found=found, wanted=server)
