"""The commit of a checkout is read as git wrote it, and an image names its own."""

from pathlib import Path

import pytest

from wayline.chassis.running_version import (
    COMMIT_VARIABLE,
    RunningVersion,
    checked_out_commit,
    named_commit,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def repository(root: Path, **files: str) -> Path:
    """Write files of a `.git`, and return a file of the checkout."""
    for name, text in files.items():
        path = root / ".git" / name.replace("__", "/").replace("_refs", "-refs")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "src" / "module.py"


@pytest.mark.parametrize(
    "files",
    [
        {"HEAD": f"{COMMIT}\n"},
        {"HEAD": "ref: refs/heads/main\n", "refs__heads__main": f"{COMMIT}\n"},
        {"HEAD": "ref: refs/heads/main\n", "packed_refs": f"# pack-refs\n{COMMIT} refs/heads/main\n"},
    ],
    ids=["detached", "branch", "packed"],
)
def test_the_commit_of_a_checkout_is_read(tmp_path: Path, files: dict[str, str]):
    assert checked_out_commit(repository(tmp_path, **files)) == COMMIT


def test_the_commit_of_a_worktree_is_read(tmp_path: Path):
    repository(tmp_path / "main", refs__heads__w=f"{COMMIT}\n", worktrees__w__HEAD="ref: refs/heads/w\n")
    (tmp_path / "main/.git/worktrees/w/commondir").write_text("../..\n")
    (tmp_path / "w").mkdir()
    (tmp_path / "w/.git").write_text(f"gitdir: {tmp_path / 'main/.git/worktrees/w'}\n")

    assert checked_out_commit(tmp_path / "w" / "module.py") == COMMIT


@pytest.mark.parametrize("files", [{}, {"HEAD": "ref: refs/heads/gone\n"}, {"HEAD": "<html>"}])
def test_a_commit_that_cannot_be_known_is_empty(tmp_path: Path, files: dict[str, str]):
    (tmp_path / ".git").mkdir()

    assert checked_out_commit(repository(tmp_path, **files)) == ""


def test_an_image_names_its_commit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(COMMIT_VARIABLE, COMMIT)
    assert named_commit() == COMMIT
    monkeypatch.setenv(COMMIT_VARIABLE, "${GIT_COMMIT}")
    assert named_commit() == ""


def test_a_version_is_shown_with_its_commit_where_that_is_known():
    assert [str(RunningVersion("1.2.3")), str(RunningVersion("1.2.3", "0123abc"))] == ["1.2.3", "1.2.3 (0123abc)"]
