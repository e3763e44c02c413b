"""What a run tries of walks and cases: a part in turn, or all."""

from __future__ import annotations

import pytest

from wayline.testkit import walks

EVERY = ["a", "b", "c", "d", "e"]


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch):
    """Return what a run of each of three commits takes."""

    def taken(walk):
        commits = []
        for turn in range(3):
            monkeypatch.setattr(walks, "turn", lambda turn=turn: turn)
            commits.append(walk())
        return commits

    return taken


def test_three_commits_try_every_case_once(turns, monkeypatch):
    monkeypatch.delenv("WAYLINE_WALKS", raising=False)

    commits = turns(lambda: walks.cases(EVERY))

    assert sorted(case for commit in commits for case in commit) == EVERY
    assert all(len(commit) < len(EVERY) for commit in commits)


def test_a_run_of_everything_has_every_case_in_order(turns, monkeypatch):
    monkeypatch.setenv("WAYLINE_WALKS", "all")

    assert turns(lambda: walks.cases(EVERY)) == [EVERY] * 3


def test_a_single_case_is_tried_by_every_commit(turns, monkeypatch):
    monkeypatch.delenv("WAYLINE_WALKS", raising=False)

    assert turns(lambda: walks.cases(["a"])) == [["a"]] * 3
