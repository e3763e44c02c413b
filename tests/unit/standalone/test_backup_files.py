"""The files of a backup: whole, torn, damaged, or of another format."""

from __future__ import annotations

import asyncio
import stat
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from wayline.standalone.backup import installation_backup
from wayline.standalone.backup.backup_files import BackupReader, BackupWriter
from wayline.standalone.backup.installation_backup import backup
from wayline.standalone.backup.kept_backups import kept_folder, new_file, remove_older, remove_unfinished
from wayline.standalone.backup.manifest import FILE, FORMAT, Manifest
from wayline.standalone.errors import BackupFailed, BackupInvalid
from wayline.standalone.settings import Settings

BODY = bytes(range(256)) * 3_000


def manifest(writer: BackupWriter, **fields: object) -> Manifest:
    at = datetime(2026, 11, 26, tzinfo=UTC)
    known = {"wayline": "0.1.0", "began_at": at, "ended_at": at, "schemas": ["router"], "dumped_by": 18}
    more = {"logs_before": 7, "streams": [], "credentials": False, "parts": writer.parts}
    return Manifest.model_validate({**known, **more, **fields})


@pytest.fixture(params=["backup", "backup.tar"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / request.param


def write(path: Path, **fields: object) -> None:
    writer = BackupWriter(path)
    for name in ("streams/EVENTS", "empty"):
        with writer.part(name) as part:
            if name != "empty":
                part(BODY[:1_000])
                part(BODY[1_000:])
    writer.finish(manifest(writer, **fields))


def test_what_was_written_is_read_back_and_closed_to_others(path: Path):
    write(path)

    backup = BackupReader(path)
    told: list[str] = []
    backup.verify(told.append)

    assert told == ["streams/EVENTS", "empty"]
    assert b"".join(backup.chunks("streams/EVENTS")) == BODY
    assert backup.manifest.parts["streams/EVENTS"].bytes == len(BODY)
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    assert {stat.S_IMODE(file.stat().st_mode) & 0o077 for file in files} == {0}


def test_a_tar_is_one_that_every_program_reads(tmp_path: Path):
    write(tmp_path / "backup.tar")

    with tarfile.open(tmp_path / "backup.tar") as tar:
        tar.extractall(tmp_path / "out", filter="data")

    assert BackupReader(tmp_path / "out").manifest == BackupReader(tmp_path / "backup.tar").manifest


def test_a_place_that_is_taken_is_left_alone(path: Path):
    write(path)
    with pytest.raises(BackupInvalid, match="is there already"):
        BackupWriter(path)
    BackupReader(path).verify()


def test_a_backup_without_its_end_is_known_as_torn(path: Path):
    writer = BackupWriter(path)
    with writer.part("streams/EVENTS") as part:
        part(BODY)

    with pytest.raises(BackupInvalid, match="was never finished"):
        BackupReader(path)


def test_a_tar_cut_anywhere_is_known_as_torn(tmp_path: Path):
    path = tmp_path / "backup.tar"
    write(path)
    whole = path.read_bytes()

    for end in (0, 100, 5_000, len(whole) // 2, len(whole) - 2_500):
        path.write_bytes(whole[:end])
        with pytest.raises(BackupInvalid):
            BackupReader(path).verify()


@pytest.mark.parametrize("where", [0.1, 0.5, 0.9])
def test_a_flipped_bit_is_found(path: Path, where: float):
    write(path)
    victim = path / "streams/EVENTS" if path.is_dir() else path
    data = bytearray(victim.read_bytes())
    data[int(len(BODY) * where)] ^= 1
    victim.write_bytes(data)

    with pytest.raises(BackupInvalid, match="streams/EVENTS is damaged"):
        BackupReader(path).verify()


def test_a_changed_manifest_is_found(tmp_path: Path):
    write(tmp_path / "backup")
    file = tmp_path / "backup" / FILE
    file.write_bytes(file.read_bytes().replace(b'"logs_before": 7', b'"logs_before": 8'))

    with pytest.raises(BackupInvalid, match="its manifest is damaged"):
        BackupReader(tmp_path / "backup")


def test_a_missing_part_is_found(tmp_path: Path):
    write(tmp_path / "backup")
    (tmp_path / "backup" / "empty").unlink()

    with pytest.raises(BackupInvalid, match="empty is not there"):
        BackupReader(tmp_path / "backup").verify()


def test_a_newer_format_is_refused_with_the_version_that_reads_it(tmp_path: Path):
    writer = BackupWriter(tmp_path / "backup")
    writer.finish(manifest(writer, format=FORMAT + 1, wayline="9.0.0"))

    with pytest.raises(BackupInvalid, match=r"restore it with the version that took it \(9\.0\.0\)"):
        BackupReader(tmp_path / "backup")


def test_an_older_format_is_refused_with_the_version_that_reads_it(tmp_path: Path):
    writer = BackupWriter(tmp_path / "backup")
    writer.finish(manifest(writer, format=FORMAT - 1, wayline="0.0.1"))

    with pytest.raises(BackupInvalid, match=r"restore it with version 0\.0\.1, then upgrade"):
        BackupReader(tmp_path / "backup")


def test_a_backup_of_a_wrong_directory_makes_nothing(tmp_path: Path):
    settings = Settings.model_validate({"data_dir": tmp_path / "data"})

    with pytest.raises(BackupFailed, match=r"there is no installation in .*data: name its directory"):
        asyncio.run(backup(settings, tmp_path / "backup.tar"))

    assert list(tmp_path.iterdir()) == []


def test_what_is_no_backup_is_said_to_be_none(tmp_path: Path):
    (tmp_path / "notes.tar").write_text("milk, bread")
    with pytest.raises(BackupInvalid, match="there is no"):
        BackupReader(tmp_path / "gone")
    with pytest.raises(BackupInvalid, match="was never finished"):
        BackupReader(tmp_path / "notes.tar")
    writer = BackupWriter(tmp_path / "backup")
    writer.finish(manifest(writer))
    (tmp_path / "backup" / FILE).write_bytes(orjson.dumps([1]))
    with pytest.raises(BackupInvalid, match="cannot be read"):
        BackupReader(tmp_path / "backup")


def test_a_folder_keeps_the_newest_backups_and_files_of_others(tmp_path: Path):
    files = [new_file(tmp_path, datetime(2026, 11, day, tzinfo=UTC)) for day in range(1, 8)]
    for file, database in zip(files, ("ours", "ours", "theirs", "ours", "ours", "ours"), strict=False):
        write(file, database=database)
    BackupWriter(files[6])
    others = [tmp_path / name for name in ("monday.tar", "wayline-20261101T000000000000Z.tar.gpg", "notes")]
    for other in others:
        other.write_bytes(files[0].read_bytes())
    damaged = new_file(tmp_path, datetime(2026, 10, 1, tzinfo=UTC))
    damaged.write_bytes(files[0].read_bytes().replace(b"router", b"ruoter"))
    write(tmp_path / "wayline-20261001T000000000001Z")

    with kept_folder(tmp_path):
        torn = remove_unfinished(tmp_path)
        gone = remove_older(tmp_path, keep=2, database="ours")

    assert (torn, gone) == ([files[6]], [files[0], files[1], files[3]])
    assert not any(file.exists() for file in (*torn, *gone))
    kept = (files[2], files[4], files[5], *others, damaged, tmp_path / "wayline-20261001T000000000001Z")
    assert all(file.exists() for file in kept)


def test_backups_that_fail_every_night_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def fails(_: object, path: Path, **__: object) -> None:
        BackupWriter(path)
        raise BackupFailed("the disk is full")

    monkeypatch.setattr(installation_backup, "_backup", fails)
    for _ in range(3):
        with pytest.raises(BackupFailed):
            asyncio.run(backup(Settings.model_validate({"data_dir": tmp_path / "data"}), tmp_path / "kept", keep=7))

    assert len([*(tmp_path / "kept").glob("*.tar")]) == 1


def test_a_folder_is_filled_by_one_backup_at_a_time(tmp_path: Path):
    with kept_folder(tmp_path / "made"), pytest.raises(BackupInvalid, match="another backup is being written"):
        with kept_folder(tmp_path / "made"):
            pass
