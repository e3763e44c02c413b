"""What tests copy is made once for all workers of a run: the first that asks for it makes it, others wait for that."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from wayline.testkit.server_directory import SHARED, server_directory

ENDS = pytest.StashKey[ExitStack]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the directory before any worker starts."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        ends = config.stash[ENDS] = ExitStack()
        os.environ[SHARED] = str(ends.enter_context(server_directory()))


def pytest_unconfigure(config: pytest.Config) -> None:
    if (ends := config.stash.get(ENDS, None)) is not None:
        ends.close()
        del os.environ[SHARED]


def make_once(name: str, make: Callable[[Path], None], *, own: Path) -> Path:
    """Return a directory that `make` has filled once for all workers; `own` is that of a run of one process."""
    parent = Path(os.environ.get(SHARED, own))
    made, begun = parent / name, parent / f"{name}.new"
    with (parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(begun, ignore_errors=True)
            begun.mkdir()
            make(begun)
            begun.rename(made)
    return made


def copy_made(made: Path, to: Path) -> None:
    """Copy a directory with the owners of its files: those of a database are not root's."""
    subprocess.run(["cp", "-a", made, to], check=True)
