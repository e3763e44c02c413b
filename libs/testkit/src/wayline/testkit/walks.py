"""How much of what is random a run walks: a part that changes with the commit, or all of it.

`make test` takes one seed of each walk and a part of the examples; `make faults` sets `WAYLINE_WALKS=all`.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Sequence
from functools import cache

ALL = "all"
SHARE = 4
"""One example of so many is tried in a run that does not try all."""


def seeds(count: int) -> Sequence[int]:
    """Return the seeds of a walk: all of them, or the one whose turn it is."""
    return range(count) if _all() else [_turn() % count]


def examples(count: int) -> int:
    """Return how many examples of a property are tried."""
    return count if _all() else max(count // SHARE, 1)


def length(whole: int, *, short: int) -> int:
    """Return how long a walk is: whole, or short in a run that does not try all."""
    return whole if _all() else short


def _all() -> bool:
    return os.environ.get("WAYLINE_WALKS") == ALL


@cache
def _turn() -> int:
    """Return a number of the commit, so that what failed in a run fails in the next one of the same code."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, check=False)
    return zlib.crc32(done.stdout.strip())
