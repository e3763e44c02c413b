"""The workers of a run have nothing to import: they are forked from a process that has read the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FORKED = """
import os
READ_BY = os.getpid()

def test_the_parent_has_read_this_file():
    assert READ_BY == os.getppid()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux workers are forked")
def test_workers_are_forked_and_report_what_cannot_be_read(tmp_path: Path):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["wayline.testkit.warm_workers"]')
    (tmp_path / "test_forked.py").write_text(FORKED)
    (tmp_path / "test_unreadable.py").write_text("import nothing_of_this_name\n\ndef test_is_lost(): ...\n")
    options = ("-q", "-n", "1", "-p", "no:cacheprovider", "--rootdir", str(tmp_path))

    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout + run.stderr
    assert "1 passed, 1 error" in run.stdout
    assert "No module named 'nothing_of_this_name'" in run.stdout
