"""Whether a machine can isolate programs is tried until it can."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from wayline.tool_registry.programs import jails
from wayline.tool_registry.programs.jails import Jails


class Trials:
    """A machine that is too busy for the first trial."""

    def __init__(self) -> None:
        self.made = 0

    def run(self, argv: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        self.made += 1
        if self.made == 1:
            raise subprocess.TimeoutExpired(argv, 20)
        return subprocess.CompletedProcess(argv, 0, b"", b"")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is tried")
async def test_a_trial_that_failed_is_made_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    trials, confining = Trials(), Jails(tmp_path)
    monkeypatch.setattr(jails, "_run", trials.run)

    busy = [await confining.why_not() for _ in range(2)]
    assert "timed out" in str(busy[0])
    assert (busy[1], trials.made) == (busy[0], 1)

    confining._try_again_at = 0.0
    assert [await confining.why_not() for _ in range(2)] == [None, None]
    assert trials.made == 2
