"""The files of a backup, closed to others: in a directory, or in one tar file, whose name ends with `.tar`."""

from __future__ import annotations

import os
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Final, Protocol

from wayline.standalone.backup.manifest import FILE, BackupPart, Manifest
from wayline.standalone.errors import BackupInvalid

CHUNK_BYTES: Final = 256 * 1024
"""What is held in memory of a part."""
TAR: Final = ".tar"


class Write(Protocol):
    """Takes the next bytes of a part."""

    def __call__(self, data: bytes) -> None: ...


class BackupWriter:
    """Writes the parts of a backup one after the other, and the manifest last."""

    def __init__(self, path: Path) -> None:
        """Begin a backup where there is nothing yet. Raises BackupInvalid."""
        self.path = path
        self.parts: dict[str, BackupPart] = {}
        self._tar: IO[bytes] | None = None
        try:
            if path.suffix == TAR:
                self._tar = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")
            else:
                path.mkdir(mode=0o700, parents=False)
        except FileExistsError:
            raise BackupInvalid(f"{path} is there already. Name a new file or directory.") from None
        except OSError as error:
            raise BackupInvalid(f"{path}: {error.strerror}. Name another place.") from None

    @contextmanager
    def part(self, name: str) -> Iterator[Write]:
        """Write one part; its size and hash are kept for the manifest."""
        hashed, size = sha256(), 0
        with self._open(name) as file:

            def write(data: bytes) -> None:
                nonlocal size
                file.write(data)
                hashed.update(data)
                size += len(data)

            yield write
        self.parts[name] = BackupPart(bytes=size, sha256=hashed.hexdigest())

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest: from now on the backup is whole."""
        with self._open(FILE) as file:
            file.write(manifest.encode())
        if self._tar is not None:
            self._tar.write(bytes(2 * tarfile.BLOCKSIZE))
            self._tar.flush()
            os.fsync(self._tar.fileno())
            self._tar.close()
        else:
            for directory in {(self.path / name).parent for name in self.parts} | {self.path}:
                _sync_directory(directory)
        _sync_directory(self.path.absolute().parent)

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        if self._tar is None:
            file = self.path / name
            file.parent.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
                yield opened
                opened.flush()
                os.fsync(opened.fileno())
            return
        # The size stands before the data and is known after it.
        begins = self._tar.tell()
        self._tar.write(bytes(tarfile.BLOCKSIZE))
        yield self._tar
        ends = self._tar.tell()
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = ends - begins - tarfile.BLOCKSIZE, 0o600, int(time.time())
        self._tar.write(bytes(-info.size % tarfile.BLOCKSIZE))
        ends = self._tar.tell()
        self._tar.seek(begins)
        self._tar.write(info.tobuf(tarfile.GNU_FORMAT))
        self._tar.seek(ends)


class BackupReader:
    """Reads a backup that is whole."""

    def __init__(self, path: Path) -> None:
        """Open a backup and read its manifest. Raises BackupInvalid."""
        self.path = path
        self._tar: tarfile.TarFile | None = None
        torn = BackupInvalid(f"{path} was never finished: it has no manifest. Take another backup.", unfinished=True)
        try:
            if not path.is_dir():
                self._tar = tarfile.open(path, "r:")  # noqa: SIM115
                self._tar.getmembers()
            with self.open(FILE) as file:
                text = file.read()
        except FileNotFoundError:
            raise (torn if path.exists() else BackupInvalid(f"there is no {path}.")) from None
        except (KeyError, tarfile.TarError):
            raise torn from None
        except OSError as error:
            raise BackupInvalid(f"{path}: {error.strerror}.") from None
        self.manifest = Manifest.decode(text, where=str(path))

    def open(self, name: str) -> IO[bytes]:
        """Open a part. Raises FileNotFoundError or KeyError."""
        if self._tar is None:
            return (self.path / name).open("rb")
        file = self._tar.extractfile(name)
        if file is None:
            raise KeyError(name)
        return file

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield a part piece by piece."""
        with self.open(name) as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    def verify(self, told: Callable[[str], None] = lambda _: None) -> None:
        """Compare every part with the manifest. Raises BackupInvalid."""
        for name, part in self.manifest.parts.items():
            hashed, size = sha256(), 0
            try:
                for chunk in self.chunks(name):
                    hashed.update(chunk)
                    size += len(chunk)
            except (OSError, KeyError):
                raise BackupInvalid(f"{self.path}: {name} is not there. Take another backup.") from None
            if size != part.bytes or hashed.hexdigest() != part.sha256:
                raise BackupInvalid(
                    f"{self.path}: {name} is damaged: {size} bytes with another content than the manifest says. "
                    "Nothing was restored; use another backup."
                )
            told(name)


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
