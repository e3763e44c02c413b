"""The version of Wayline that this process runs, and the commit that it was built from, where that is known."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

COMMIT_VARIABLE: Final = "WAYLINE_COMMIT"
"""Set in an image, which has no repository in it."""
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")
SHOWN_DIGITS: Final = 12


@dataclass(frozen=True)
class RunningVersion:
    """A version, and the commit that tells two builds of it apart."""

    version: str
    commit: str = ""
    """Empty: not known."""

    def __str__(self) -> str:
        return f"{self.version} ({self.commit})" if self.commit else self.version


@cache
def running_version() -> RunningVersion:
    """Return what this process runs."""
    return RunningVersion(version("wayline-chassis"), (named_commit() or checked_out_commit())[:SHOWN_DIGITS])


def named_commit() -> str:
    """Return the commit that the environment names; empty: none."""
    named = os.environ.get(COMMIT_VARIABLE, "").strip().lower()
    return named if _COMMIT.fullmatch(named) else ""


def checked_out_commit(within: Path = Path(__file__)) -> str:
    """Return the commit of the repository that a file stands in, read without git; empty: it stands in none."""
    for folder in within.resolve().parents:
        git = folder / ".git"
        try:
            if git.is_file():
                # A worktree's: it says where its own half of the repository is.
                git = folder / git.read_text().removeprefix("gitdir:").strip()
            if git.is_dir():
                return _head(git)
        except OSError:
            return ""
    return ""


def _head(git: Path) -> str:
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref:"):
        return _plain(head)
    name = head.removeprefix("ref:").strip()
    common = git / (git / "commondir").read_text().strip() if (git / "commondir").is_file() else git
    for repository in (git, common):
        if (repository / name).is_file():
            return _plain((repository / name).read_text().strip())
    packed = common / "packed-refs"
    lines = packed.read_text().splitlines() if packed.is_file() else []
    return next((_plain(line.split(" ")[0]) for line in lines if line.endswith(f" {name}")), "")


def _plain(text: str) -> str:
    return text if _COMMIT.fullmatch(text) else ""
