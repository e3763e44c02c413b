"""What `make first-run` does follows from README.md alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest


def test_the_commands_of_a_first_run_are_those_of_the_readme(first_run: ModuleType, repository: Path):
    readme = (repository / "README.md").read_text()
    doors = first_run.doors_of(readme)

    assert first_run.blocks_of(readme)[0].commands.splitlines()[0] == first_run.RUN
    assert list(doors) == ["curl", "wayline", "NATS"]
    assert doors["wayline"].commands == 'wayline run "Your question"'
    assert all(f"127.0.0.1:{port}" in readme for port in first_run.PORTS)


def test_what_a_first_run_looks_for_is_in_the_readmes_picture(first_run: ModuleType, repository: Path):
    printed = first_run.blocks_of((repository / "README.md").read_text())[1].text

    missing = [what for what, pattern in first_run.SEEN.items() if not re.search(pattern, printed, re.M)]
    assert missing == []


def test_what_has_ended_needs_no_stop(first_run: ModuleType):
    process = subprocess.Popen([sys.executable, "-c", ""], text=True, start_new_session=True)
    process.wait()

    first_run.stop(process, within_s=1)


def test_what_goes_on_after_ctrl_c_is_killed(first_run: ModuleType):
    deaf = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
    process = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == "deaf\n"

    with process.stdout, pytest.raises(SystemExit, match="missed: an end"):
        first_run.stop(process, within_s=0.1)
    assert process.returncode == -9
