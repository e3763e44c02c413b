"""How much of what is random, or of many cases, a run tries: a part that changes with the commit, or all of it.

`make test` takes one seed of each walk, a part of the examples, and a part of dear tests' cases; `make test-all` and
`make faults` set `WAYLINE_WALKS=all`.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Collection, Sequence
from functools import cache
from typing import TypeVar

T = TypeVar("T")

ALL = "all"
EXAMPLES_SHARE = 8
"""One example of so many is tried in a run that does not try all."""
CASES_SHARE = 3
"""One case of so many is tried, where a test names no other share."""


def seeds(count: int) -> Sequence[int]:
    """Return the seeds of a walk: all of them, or the one whose turn it is."""
    return range(count) if tries_all() else [turn() % count]


def cases(every: Collection[T], *, share: int = CASES_SHARE) -> list[T]:
    """Return which cases of a dear test are tried: all of them, or the one of each `share` whose turn it is."""
    step = 1 if tries_all() else min(share, len(every))
    return list(every)[turn() % step :: step]


def examples(count: int) -> int:
    """Return how many examples of a property are tried."""
    return count if tries_all() else max(count // EXAMPLES_SHARE, 1)


def length(whole: int, *, short: int) -> int:
    """Return how long a walk is: whole, or short in a run that does not try all."""
    return whole if tries_all() else short


def tries_all() -> bool:
    """Return whether this run tries all that there is."""
    return os.environ.get("WAYLINE_WALKS") == ALL


@cache
def turn() -> int:
    """Return a number of the commit, so that what failed in a run fails in the next one of the same code."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, check=False)
    return zlib.crc32(done.stdout.strip())
