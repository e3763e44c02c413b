"""Copy the Postgres programs to where the account that runs them can read them: root's directories are often closed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wayline.embedded import system_account
from wayline.embedded.errors import ProgramsUnreadable
from wayline.embedded.process import Account

# Caches first: what is there may be deleted at any time, and is made again.
PLACES = (Path("/var/cache/wayline"), Path("/var/tmp/wayline-root"), Path("/tmp/wayline-root"))
NAME_PREFIX = "postgres-"
UNFINISHED_SUFFIX = ".new"
LOCK_FILE = "lock"
LOCK_WAIT_S = 30.0
LOCK_POLL_S = 0.02


@dataclass(frozen=True)
class ProgramCopy:
    """A copy that stays while the file descriptor, a shared lock, is open here or in a server."""

    root: Path
    programs: Programs
    fd: int

    def path_of(self, original: Path) -> Path:
        """Return where the copy of an installed file is."""
        return self.root / original.relative_to(self.programs.root)

    def release(self) -> None:
        """Give up our share; a server that still runs keeps its own."""
        os.close(self.fd)


@dataclass(frozen=True)
class Programs:
    """The files of one installed version: `parts`, each a file or a directory, below `root`."""

    root: Path
    parts: tuple[Path, ...]
    version: str

    def files(self) -> dict[Path, int]:
        """Return the size of every file by its path below the root."""
        return _sizes(self.root, self.parts)

    def copy_name(self) -> str:
        """Name the copy by version and content, so that two builds of one version are two copies."""
        listed = "\n".join(f"{path} {size}" for path, size in sorted(self.files().items()))
        return f"{NAME_PREFIX}{self.version}-{hashlib.sha256(listed.encode()).hexdigest()[:8]}"

    def readable_by(self, account: Account) -> bool:
        """Return whether the account can run the programs where they are."""
        paths = [self.root / path for part in self.parts for path in _walk(self.root, part)]
        return system_account.closed_on_the_way(*paths, account=account) is None and all(
            system_account.may_read(path.stat(), account) for path in paths
        )


def readable_copy(programs: Programs, *, account: Account) -> ProgramCopy:
    """Return a copy that the account can read, made the first time. Raises ProgramsUnreadable."""
    refusals: list[str] = []
    for place in PLACES:
        try:
            _make_place(place, account=account)
            return _copy_in(place, programs)
        except OSError as error:
            refusals.append(f"{place}: {error.strerror or error}")
    raise ProgramsUnreadable(programs=programs.root, account=account.name, refusals=refusals)


def _make_place(place: Path, *, account: Account) -> None:
    """Make the directory; refuse one that another user made or in which no program can run."""
    place.mkdir(mode=0o755, parents=True, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(None, "it is not a directory of ours alone")
    place.chmod(0o755)
    if system_account.closed_on_the_way(place / LOCK_FILE, account=account):
        raise PermissionError(None, f"{account.name} may not enter it")
    if os.statvfs(place).f_flag & os.ST_NOEXEC:
        raise PermissionError(None, "no program may be run there")


def _copy_in(place: Path, programs: Programs) -> ProgramCopy:
    with (place / LOCK_FILE).open("w") as lock:
        _wait_for_lock(lock.fileno())
        target = place / programs.copy_name()
        if not target.exists() or _sizes(target, programs.parts) != programs.files():
            _remove_unused(place)
            _copy(programs, target)
        return _share(target, programs)


def _wait_for_lock(fd: int) -> None:
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(None, f"another process has held its lock for {LOCK_WAIT_S:.0f} s") from None
        time.sleep(LOCK_POLL_S)


def _remove_unused(place: Path) -> None:
    """Remove the copies that no server uses: of older versions, damaged, or begun by a process that was killed."""
    for copy in place.glob(f"{NAME_PREFIX}*"):
        try:
            with (copy / LOCK_FILE).open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        except FileNotFoundError:
            pass
        shutil.rmtree(copy)


def _copy(programs: Programs, target: Path) -> None:
    unfinished = target.with_name(target.name + UNFINISHED_SUFFIX)
    try:
        for part in programs.parts:
            for path in _walk(programs.root, part):
                _copy_one(programs.root / path, unfinished / path)
        (unfinished / LOCK_FILE).touch(mode=0o600)
        unfinished.rename(target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _copy_one(source: Path, target: Path) -> None:
    """Copy a file or make a directory, readable by every user whatever the umask and the source are."""
    for directory in reversed(target.parents):
        if not directory.exists():
            directory.mkdir()
            directory.chmod(0o755)
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif source.is_dir():
        target.mkdir(exist_ok=True)
        target.chmod(0o755)
    else:
        shutil.copyfile(source, target)
        target.chmod(0o755 if source.stat().st_mode & stat.S_IXUSR else 0o644)


def _share(copy: Path, programs: Programs) -> ProgramCopy:
    fd = os.open(copy / LOCK_FILE, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return ProgramCopy(root=copy, programs=programs, fd=fd)


def _walk(root: Path, part: Path) -> Iterator[Path]:
    """Yield the part itself and all below it, as paths below the root."""
    yield part
    if (root / part).is_dir():
        yield from (path.relative_to(root) for path in (root / part).rglob("*"))


def _sizes(root: Path, parts: tuple[Path, ...]) -> dict[Path, int]:
    found = (path for part in parts for path in _walk(root, part))
    return {path: (root / path).stat().st_size for path in found if (root / path).is_file()}
