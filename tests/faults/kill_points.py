"""Which of the kills run in `make test`; all of them run in `make faults`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from wayline.chassis import Failpoint


def kill_points(passages: Iterable[tuple[Failpoint, *tuple[int, ...]]], quick: Collection[Failpoint]) -> list[Any]:
    """Return a test case for each passage: a failpoint, and which time it is reached; slow unless first of `quick`."""
    cases, seen = [], set[Failpoint]()
    for point, *nth in passages:
        is_quick = point in quick and point not in seen
        seen.add(point)
        name = ":".join(map(str, (point, *nth)))
        cases.append(pytest.param(point, *nth, id=name, marks=() if is_quick else pytest.mark.slow))
    return cases


def slow(*values: Any) -> Any:
    """Return a test case that `make faults` alone runs."""
    return pytest.param(*values, marks=pytest.mark.slow)
