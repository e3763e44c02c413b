"""Of a file that takes long, a run of the whole suite takes each third test: those whose turn it is by the commit.

Each test is run with about one of three commits, and by `make test-all`. A folder or a file that is named is run whole.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import defaultdict

import pytest

from wayline.testkit.longest_first import RECORDED, WRITE
from wayline.testkit.walks import tries_all, turn

SHARE = 3
"""One test of so many is run."""
LONG_S = 2.0
"""A file that takes longer has turns."""
TAKES_TURNS = ("tests/browser/", "tests/faults/", "tests/integration/")
"""What runs real servers; the rest is cheap."""
ALWAYS = ("tests/faults/rules/", "tests/integration/tenants/")
"""The rules of the protocol, and that no tenant sees another."""


def pytest_report_header(config: pytest.Config) -> str | None:
    if not _takes_turns(config):
        return None
    return f"turns: one of {SHARE} tests of each file that takes long, by the commit; `make test-all` runs all"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of long files whose turn it is not; every worker of xdist leaves out the same ones."""
    recorded = config.rootpath / RECORDED
    if not _takes_turns(config) or not recorded.exists():
        return
    seconds: dict[str, float] = json.loads(recorded.read_text())
    number = defaultdict[str, int](int)
    run, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        file = item.nodeid.partition("::")[0]
        is_run = not is_long(file, seconds) or is_turn(file, number[file], turn())
        number[file] += 1
        (run if is_run else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = run


def is_long(file: str, seconds: dict[str, float]) -> bool:
    """Return whether a file's tests take turns, by the seconds that each file took."""
    return file.startswith(TAKES_TURNS) and not file.startswith(ALWAYS) and seconds.get(file, 0.0) >= LONG_S


def is_turn(file: str, number: int, turn_now: int) -> bool:
    """Return whether it is the turn of the test with this number in its file.

    The turn is hashed with the file: `cases` takes its remainder, and a case would always meet the same turn.
    """
    return (number + zlib.crc32(f"{turn_now} {file}".encode())) % SHARE == 0


def _takes_turns(config: pytest.Config) -> bool:
    whole = config.args == ["tests"] and config.option.markexpr == "not slow" and not config.getoption("lf")
    return whole and not tries_all() and not os.environ.get(WRITE)
