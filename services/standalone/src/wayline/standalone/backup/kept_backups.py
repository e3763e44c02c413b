"""`wayline backup FOLDER --keep N`: the newest backups of one installation in a folder; the older ones go."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from wayline.standalone.backup.backup_files import TAR, BackupReader
from wayline.standalone.errors import BackupInvalid

LOCK: Final = ".wayline-backup.lock"
_MADE: Final = re.compile(r"wayline-\d{8}T\d{12}Z\.tar")


@contextmanager
def kept_folder(folder: Path) -> Iterator[Path]:
    """Hold a folder, which is made where it is missing, against other backups of this kind. Raises BackupInvalid."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BackupInvalid(f"{folder}: {error.strerror}. Name a folder for --keep.") from None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupInvalid(f"another backup is being written into {folder}: wait for its end.") from None
        yield folder
    finally:
        os.close(fd)


def new_file(folder: Path, at: datetime) -> Path:
    """Return the file of a backup that begins now, in UTC; later ones sort behind it."""
    return folder / f"wayline-{at:%Y%m%dT%H%M%S%f}Z{TAR}"


def remove_unfinished(folder: Path) -> list[Path]:
    """Remove the backups of a folder that were never finished; return what went.

    The caller holds the folder, so that nothing unfinished is still being written.
    """
    gone = [file for file in _made(folder) if _is_unfinished(file)]
    for file in gone:
        file.unlink()
    return gone


def remove_older(folder: Path, *, keep: int, database: str) -> list[Path]:
    """Remove all but the newest whole backups of a database; return what went.

    Only files that `new_file` named are looked at.
    """
    gone = [file for file in _made(folder) if _database_of(file) == database][:-keep]
    for file in gone:
        file.unlink()
    return gone


def _made(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if _MADE.fullmatch(file.name) and not file.is_symlink())


def _is_unfinished(file: Path) -> bool:
    try:
        BackupReader(file)
    except BackupInvalid as error:
        return error.unfinished
    return False


def _database_of(file: Path) -> str | None:
    """Return of which database a backup is; None: it cannot be read."""
    try:
        return BackupReader(file).manifest.database
    except BackupInvalid:
        return None
