"""`wayline backup` and `wayline restore` that are killed and run once more, and what needs no backup."""

from __future__ import annotations

import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wayline.standalone.backup.backup_files import BackupReader
from wayline.standalone.backup.take_backup import KEYS
from wayline.standalone.errors import BackupInvalid
from wayline.testkit import until
from wayline.testkit.disks import small_disk
from wayline.testkit.fixtures import run

from .conftest import START_WITHIN_S, Installed

pytestmark = pytest.mark.slow

# One source for all of them, and one backup of it, taken while it ran.


class Source(Installed):
    """An installation with a finished job."""

    job: str = ""
    backup: Path


@pytest.fixture(scope="module")
def source(server_dir: Path) -> Iterator[Source]:
    home = server_dir / f"backup-{secrets.token_hex(3)}"
    home.mkdir()
    source = Source(home / "data")
    try:
        source.start()
        source.job = source.run_json("run", "What time is it?")["job_id"]
        source.backup = home / "backup.tar"
        source.run_json("backup", str(source.backup))
        yield source
    finally:
        source.abandon()


def test_a_killed_restore_is_finished_by_another_one(source: Source, empty: Installed):
    child = empty.spawn("restore", str(source.backup))
    marker = empty.data / "restoring.json"
    run(until(marker.exists, within=START_WITHIN_S, why="the restore has begun"))
    child.send_signal(signal.SIGKILL)
    child.wait(START_WITHIN_S)
    assert marker.exists()

    for command in (("up",), ("serve", "router"), ("backup", str(empty.data / "too-early"))):
        refused = empty.wayline(*command)
        assert refused.returncode == 1
        assert f"run `wayline restore {source.backup}` once more" in refused.stderr
    assert "was not finished here" in empty.wayline("doctor").stdout

    done = empty.wayline("restore", str(source.backup))
    assert done.returncode == 0, done.stdout + done.stderr
    # Of what does not run, and back into its place.
    stopped = empty.data.parent / "stopped"
    empty.run_json("backup", str(stopped))
    done = empty.wayline("restore", str(stopped), "--replace", "data", "--replicas", "1", "--nothing-after")
    assert done.returncode == 0, done.stdout + done.stderr
    empty.start()
    assert empty.run_json("jobs", "show", source.job)["status"] == "completed"


def test_a_killed_backup_is_none_and_the_next_one_is_whole(source: Source):
    torn, whole = source.data.parent / "torn", source.data.parent / "whole"
    child = source.spawn("backup", str(torn))
    run(until((torn / "streams").exists, within=START_WITHIN_S, why="the backup has begun"))
    child.send_signal(signal.SIGKILL)
    child.wait(START_WITHIN_S)

    with pytest.raises(BackupInvalid, match="was never finished"):
        BackupReader(torn)
    assert source.wayline("restore", str(torn), "--dry-run").returncode == 1

    assert source.wayline("backup", str(whole), "--without-credentials").returncode == 0
    backup = BackupReader(whole)
    backup.verify()
    assert KEYS not in backup.manifest.parts


def test_a_full_disk_ends_a_backup_with_one_line(source: Source, tmp_path: Path):
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        (disk.path / "other").write_bytes(bytes(900 * 1024))
        done = source.wayline("backup", str(disk.path / "backup"))

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left on device. What is there is no backup: remove it" in done.stderr


def test_the_documented_rebuild_makes_jobs_anew_from_their_logs(source: Source):
    written = (source.data / "credentials" / "tracing.env").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in written if "=" in line)

    done = subprocess.run(
        [sys.executable, "-m", "wayline.tracing", "rebuild"],
        env={**source.env, **variables},
        capture_output=True,
        text=True,
        timeout=START_WITHIN_S,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9]\d* records read, 0 unreadable", done.stdout)
    assert source.run_json("jobs", "show", source.job)["status"] == "completed"
