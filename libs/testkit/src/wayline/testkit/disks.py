"""A small disk of a test's own, to be filled and freed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

JUNK = "junk"
BLOCK = bytes(64 * 1024)


@dataclass(frozen=True)
class SmallDisk:
    """A tmpfs that counts as a disk."""

    path: Path

    def fill(self) -> None:
        """Leave no room, down to the last page."""
        with (self.path / JUNK).open("ab", buffering=0) as junk:
            for size in (len(BLOCK), 4096, 512, 1):
                try:
                    while junk.write(BLOCK[:size]) == size:
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        """Make room again."""
        (self.path / JUNK).unlink(missing_ok=True)


@contextmanager
def small_disk(path: Path, *, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a small disk for the time of a test; where that is not allowed, skip it and say so."""
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "wayline-test", os.fspath(path)]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a disk to fill cannot be mounted here (it takes root and mount): {done.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", os.fspath(path)], check=False)
