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
def test_a_worker_is_forked_from_what_has_read_the_tests(tmp_path: Path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["wayline.testkit.warm_workers"]')
    (tmp_path / "test_forked.py").write_text(FORKED)
    options = ("-q", "-n", "1", "-p", "no:cacheprovider", "--import-mode=importlib", "--rootdir", str(tmp_path))

    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
