"""Which tests of a long file a commit runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wayline.testkit import taking_turns
from wayline.testkit.taking_turns import ALWAYS, LONG_S, SHARE, is_turn

LONG, SHORT, UNIT = "tests/integration/a/test_long.py", "tests/integration/a/test_short.py", "tests/unit/test_long.py"
RULES = f"{ALWAYS[0]}test_a.py"
SECONDS = {LONG: LONG_S * 10, SHORT: LONG_S / 2, UNIT: LONG_S * 10, RULES: LONG_S * 10}
TESTS = [f"{file}::test_{number}" for file in SECONDS for number in range(9)]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return what is run of the tests, at one turn or another."""
    monkeypatch.delenv("WAYLINE_WALKS", raising=False)
    monkeypatch.delenv("WAYLINE_WRITE_DURATIONS", raising=False)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/durations.json").write_text(json.dumps(SECONDS))

    def run_at(turn: int, *, args: str = "tests", mark: str = "not slow", failed: bool = False) -> list[str]:
        monkeypatch.setattr(taking_turns, "turn", lambda: turn)
        items: Any = [SimpleNamespace(nodeid=nodeid) for nodeid in TESTS]
        config: Any = SimpleNamespace(
            args=[args],
            rootpath=tmp_path,
            option=SimpleNamespace(markexpr=mark),
            getoption=lambda name: failed,
            hook=SimpleNamespace(pytest_deselected=lambda items: None),
        )
        taking_turns.pytest_collection_modifyitems(config, items)
        return [item.nodeid for item in items]

    return run_at


def test_a_commit_runs_each_third_test_of_a_long_file(run):
    left_out = set(TESTS) - set(run(1))

    assert {nodeid.partition("::")[0] for nodeid in left_out} == {LONG}
    assert len(left_out) == 9 - 9 // SHARE


def test_no_test_is_left_out_by_every_commit(run):
    assert {nodeid for turn in range(30) for nodeid in run(turn)} == set(TESTS)


def test_a_case_meets_every_turn_of_its_file():
    # `cases` takes the turn's remainder, too.
    assert {is_turn(LONG, 0, turn) for turn in range(0, 90, SHARE)} == {True, False}


@pytest.mark.parametrize(
    "asked", [{"args": "tests/integration"}, {"mark": "slow or not slow"}, {"failed": True}], ids=str
)
def test_a_part_that_is_asked_for_is_run_whole(run, asked: dict[str, Any]):
    assert run(1, **asked) == TESTS
