"""`wayline backup` and `wayline restore` as an operator runs them: onto other ports, killed, refused, once more."""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from wayline.standalone.backup.backup_files import BackupReader
from wayline.standalone.backup.take_backup import KEYS
from wayline.standalone.errors import BackupInvalid
from wayline.testkit import until
from wayline.testkit.fixtures import run

from .conftest import START_WITHIN_S, Installed

# One source for all of them, and one backup of it, taken while it ran.


class Source(Installed):
    """An installation with a finished job, a secret and a client of its bus."""

    job: str = ""
    backup: Path

    @property
    def secret(self) -> str:
        return json.loads((self.data / "credentials" / "keys.json").read_text())["ciphers"]["tool_registry"]


@pytest.fixture(scope="module")
def source(server_dir: Path) -> Iterator[Source]:
    home = server_dir / f"backup-{secrets.token_hex(3)}"
    home.mkdir()
    source = Source(home / "data")
    try:
        source.start()
        source.job = source.run_json("run", "What time is it?")["job_id"]
        assert source.wayline("credentials", "create", "shop", "--tenant", "default").returncode == 0
        source.backup = home / "backup.tar"
        source.run_json("backup", str(source.backup))
        yield source
    finally:
        source.abandon()


def test_a_backup_restored_on_other_ports_has_its_jobs(source: Source, fresh: Installed):
    plan = fresh.run_json("restore", str(source.backup), "--dry-run")
    assert plan["streams"]["EVENTS"] > 0
    assert not fresh.data.exists()

    done = fresh.wayline("restore", str(source.backup))
    assert done.returncode == 0, done.stdout + done.stderr
    fresh.start()

    shown = fresh.run_json("jobs", "show", source.job)
    assert shown["status"] == "completed"
    assert fresh.run_json("run", "What time is it?")["status"] == "completed"
    assert "shop" in fresh.wayline("credentials", "list").stdout
    assert json.loads((fresh.data / "credentials" / "keys.json").read_text())["ciphers"]["tool_registry"] == (
        source.secret
    )
    report = fresh.run_json("doctor")
    assert report["healthy"], report

    fresh.stop()
    again = fresh.wayline("restore", str(source.backup))
    assert again.returncode == 1
    assert "there is data already" in again.stderr and "--replace data" in again.stderr


@pytest.mark.slow
def test_a_killed_restore_is_finished_by_another_one(source: Source, fresh: Installed):
    child = fresh.spawn("restore", str(source.backup))
    marker = fresh.data / "restoring.json"
    run(until(marker.exists, within=START_WITHIN_S, why="the restore has begun"))
    child.send_signal(signal.SIGKILL)
    child.wait(START_WITHIN_S)
    assert marker.exists()

    refused = fresh.wayline("up")
    assert refused.returncode == 1
    assert f"run `wayline restore {source.backup}` once more" in refused.stderr

    done = fresh.wayline("restore", str(source.backup))
    assert done.returncode == 0, done.stdout + done.stderr
    fresh.start()
    assert fresh.run_json("jobs", "show", source.job)["status"] == "completed"


@pytest.mark.slow
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


def test_a_restore_beside_a_running_platform_is_refused(source: Source):
    done = source.wayline("restore", str(source.backup), "--replace", "data")

    assert done.returncode == 1
    assert "already runs" in done.stderr


def test_another_name_replaces_nothing(source: Source):
    done = source.wayline("restore", str(source.backup), "--replace", "other")

    assert done.returncode == 1
    assert "this installation is called data. Nothing was changed" in done.stderr
