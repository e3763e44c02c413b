"""Where the servers of tests keep their data: in memory where there is enough of it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wayline.embedded.process import is_alive

MEMORY = Path("/dev/shm")
FREE_MIN_BYTES = 4 * 1024**3
"""A container's is often too small for a Postgres."""
PREFIX = "wayline-test-"
SHARED = "WAYLINE_TESTS_SHARED"
"""Says where the workers of a run keep what they share; a run of one process keeps it among its own."""


@contextmanager
def server_directory() -> Iterator[Path]:
    """Make a directory for this process's servers, and yield it; it is gone afterwards.

    A database is a thousand files: on a disk their creation takes ten times as long, and tests want one each.
    """
    parent = MEMORY if _has_room(MEMORY) else Path(tempfile.gettempdir())
    _remove_forgotten(parent)
    directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
    directory.chmod(0o711)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _has_room(directory: Path) -> bool:
    return directory.is_dir() and shutil.disk_usage(directory).free >= FREE_MIN_BYTES


def _remove_forgotten(parent: Path) -> None:
    """Remove the directories of processes that were killed: memory is not to be filled by them."""
    for directory in parent.glob(f"{PREFIX}*-*"):
        pid = directory.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not is_alive(int(pid)):
            shutil.rmtree(directory, ignore_errors=True)
