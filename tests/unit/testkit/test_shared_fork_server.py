"""The fork servers of a whole run's workers are forked from one process, and end with all that they forked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wayline.embedded.process import is_alive
from wayline.testkit import until
from wayline.testkit.fork_server import share_fork_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there it is safe to fork")

TARGETS = """
import os, sys, time

def tell_of_imports():
    print("fractions" in sys.modules, os.getppid())

def leave_one_behind():
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
    print(pid)
"""
WORKER = """
import os, sys, time
from pathlib import Path
from wayline.testkit import fork_server

def finish(target):
    log = Path.cwd() / f"{target}-{os.getpid()}"
    child = fork_server.fork(f"targets:{target}", log=log)
    while not child.exited:
        time.sleep(0.01)
    return log.read_text().strip()

fork_server.END_WITHIN_S = 0.2
print(finish("tell_of_imports"), finish("leave_one_behind"), *fork_server.end_fork_server())
"""


@pytest.fixture
def worked(server_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What two workers print, whose fork servers share their imports."""
    # A socket's path is a hundred bytes long at most.
    address = server_dir / "shared-forks"
    (tmp_path / "targets.py").write_text(TARGETS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with share_fork_server(address, ["fractions"]):
        argv = [sys.executable, "-c", WORKER]
        done = [subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False) for _ in range(2)]
    assert [one.stderr for one in done] == [b"", b""]
    return [one.stdout.decode().strip().split(" ", 3) for one in done]


async def test_fork_servers_share_imports_and_end_what_is_left(worked: list[list[str]]):
    for has_imported, server, orphan, left in worked:
        assert (has_imported, left) == ("True", f"{orphan} left by a forked process")
        await until(lambda pid=int(orphan): not is_alive(pid), why="what was left has ended")
        await until(lambda pid=int(server): not is_alive(pid), why="the fork server has ended")
    assert worked[0][1] != worked[1][1]
