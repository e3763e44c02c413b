"""The files of tests that take longest begin first: one that begins last would be waited for alone."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

WRITE = "WAYLINE_WRITE_DURATIONS"
"""Says into which file `make durations` writes."""
RECORDED = Path("tests/durations.json")
UNKNOWN_S = 10.0
"""Of a file that is new."""

_taken: dict[str, float] = defaultdict(float)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the files of a worker of xdist; every worker has the same order, as xdist demands."""
    recorded = config.rootpath / RECORDED
    if not hasattr(config, "workerinput") or not recorded.exists():
        return
    seconds: dict[str, float] = json.loads(recorded.read_text())
    items.sort(key=lambda item: -seconds.get(_file(item.nodeid), UNKNOWN_S))


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _taken[_file(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what each file took, where that is asked for."""
    to = os.environ.get(WRITE)
    if not to or hasattr(session.config, "workerinput"):
        return
    rounded = {file: round(seconds) for file, seconds in _taken.items()}
    Path(to).write_text(json.dumps(rounded, indent=0, sort_keys=True) + "\n")


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
