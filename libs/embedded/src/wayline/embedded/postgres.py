"""PostgreSQL with pgvector from its wheel."""

import asyncio
import hashlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from wayline.embedded import binaries, system_account
from wayline.embedded.datadir import DataDirLock
from wayline.embedded.errors import DataDirForeign, DataDirTaken, Unreachable
from wayline.embedded.ports import LOOPBACK
from wayline.embedded.process import Account, Child, is_alive, spawn
from wayline.embedded.program_copy import ProgramCopy, readable_copy
from wayline.embedded.server import EmbeddedServer

SUPERUSER = "postgres"
SOCKET_PATH_BYTES_MAX = 100
PASSWORD_FILE = "password"
INITDB_WAIT_S = 120.0
# The directory that a process works in. It is entered before root becomes the account; from then on the kernel asks
# for no right on the directories above it, and Postgres never leaves it.
CWD = Path("/proc/self/cwd")
INITDB_OPTIONS = (
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    # No locale of the machine decides how text sorts: the same everywhere, and an upgrade breaks no index.
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--no-instructions",
    # One call for the whole file system instead of an fsync for each of a thousand files: seconds on a slow disk.
    *(("--sync-method=syncfs",) if sys.platform == "linux" else ()),
)

# For a machine that runs everything else too.
SETTINGS: Mapping[str, str] = {
    "shared_buffers": "128MB",
    "max_connections": "200",
    "synchronous_commit": "on",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}


class PostgresServer(EmbeddedServer):
    """A Postgres server with password authentication, made on the first start."""

    name: ClassVar[str] = "Postgres"
    mark: ClassVar[str] = f"postgres {binaries.POSTGRES_MAJOR}"
    # Fast shutdown: open transactions are rolled back and a checkpoint is written.
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int | None = None,
        port_variable: str = "WAYLINE_POSTGRES_PORT",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(data_dir, port=port, port_variable=port_variable)
        self.settings = {**SETTINGS, **(settings or {})}
        self.data = self.data_dir / "data"
        self._account: Account | None = None
        # A directory on the way to the data is closed to the account.
        self._closed = False
        self._copy: ProgramCopy | None = None

    @property
    def password(self) -> str:
        """Return the superuser's password, generated with the data directory."""
        return (self.data_dir / PASSWORD_FILE).read_text().strip()

    @property
    def socket_dir(self) -> Path:
        """Return the directory of the unix socket: beside the data, unless that path is too long for a socket."""
        beside = self.data_dir / "run"
        if self._closed or len(os.fsencode(beside / f".s.PGSQL.{self.port}")) <= SOCKET_PATH_BYTES_MAX:
            return beside
        key = hashlib.sha256(str(self.data_dir).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"wayline-{key}"

    def dsn(self, *, database: str = "postgres", user: str = SUPERUSER, password: str | None = None) -> str:
        """Return the address of a database for a user; the superuser's own password is known here."""
        secret = self.password if password is None else password
        return f"postgresql://{quote(user, safe='')}:{quote(secret, safe='')}@{LOOPBACK}:{self.port}/{quote(database)}"

    async def _prepare(self) -> None:
        self._account = system_account.account_for(self.data)
        if self._account is not None:
            # Others may pass through, not look: everything inside is 0600 or 0700.
            self.data_dir.chmod(0o711)
            self._closed = self._is_closed_to(self._account)
            self._copy = await _copy_where_unreadable(self._account)
        if not self.data.exists():
            await self._initialise()
        self._require_ours()
        self._forget_stale_pid_file()
        self._make_socket_dir()

    def _spawn(self, lock: DataDirLock) -> Child:
        settings = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        socket_dir = _beside_cwd(self.socket_dir) if self._closed else self.socket_dir
        where = ["-h", LOOPBACK, "-p", str(self.port), "-k", socket_dir]
        return spawn(
            [self._program("postgres"), "-D", CWD if self._closed else self.data, *where, *settings],
            cwd=self.data,
            log=self.log,
            death_signal=self.stop_signal,
            account=self._account,
            env=_environment(),
            keep_fds=[lock.fd, *([self._copy.fd] if self._copy else [])],
        )

    async def _is_ready(self, child: Child) -> bool:
        # The server writes in its last line that it accepts connections; a TCP probe would only add noise to its log.
        lines = self._pid_file_lines()
        return len(lines) >= 8 and lines[0] == str(child.pid) and lines[7].strip() == "ready"

    async def _initialise(self) -> None:
        """Make the cluster beside its place and move it there, so that an interrupted start leaves no half of one."""
        fresh, password = self.data.with_name("data.new"), self.data_dir / PASSWORD_FILE
        shutil.rmtree(fresh, ignore_errors=True)
        password.unlink(missing_ok=True)
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(24))
        fresh.mkdir(mode=0o700)
        if self._account is not None:
            system_account.give(fresh, account=self._account)
            system_account.give(password, account=self._account)
        where = ["-D", CWD if self._closed else fresh, "--pwfile", _beside_cwd(password) if self._closed else password]
        child = spawn(
            [self._program("initdb"), *where, "-U", SUPERUSER, *INITDB_OPTIONS],
            cwd=fresh,
            log=self.log,
            death_signal=signal.SIGKILL,
            account=self._account,
            env=_environment(),
        )
        try:
            ended = await child.wait(within_s=INITDB_WAIT_S)
        except BaseException:
            await child.kill()
            raise
        if not ended or child.process.returncode:
            await child.kill()
            raise self._start_failed("could not make its data directory (initdb failed)")
        fresh.rename(self.data)

    def _is_closed_to(self, account: Account) -> bool:
        directory = system_account.closed_on_the_way(self.data, account=account)
        if directory is not None and not CWD.is_dir():
            raise Unreachable(directory=directory, wanted=self.data, account=account.name)
        return directory is not None

    def _program(self, name: str) -> Path:
        programs = binaries.postgres_bin()
        return programs / name if self._copy is None else self._copy.path_of(programs / name)

    def _let_go(self) -> None:
        super()._let_go()
        if self._copy is not None:
            self._copy.release()
            self._copy = None

    def _require_ours(self) -> None:
        version_file = self.data / "PG_VERSION"
        version = version_file.read_text().strip() if version_file.exists() else "something else"
        if version != str(binaries.POSTGRES_MAJOR):
            raise DataDirForeign(data_dir=self.data, found=f"postgres {version}", wanted=self.mark)
        owner = self.data.stat().st_uid
        if owner != (self._account.uid if self._account else os.geteuid()):
            if self._account is None:
                raise DataDirForeign(data_dir=self.data, found=f"the user with id {owner}", wanted="this one")
            system_account.give(self.data, account=self._account)

    def _forget_stale_pid_file(self) -> None:
        """Remove a pid file whose process is not Postgres: Postgres only checks that some process has that id."""
        lines = self._pid_file_lines()
        if not lines:
            return
        pid = abs(int(lines[0]))
        if _works_in(pid, self.data):
            raise DataDirTaken(data_dir=self.data, holder=f"the running Postgres {pid}")
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _make_socket_dir(self) -> None:
        """Make the socket directory ours alone, and refuse one that another user made first."""
        self.socket_dir.mkdir(mode=0o700, exist_ok=True)
        owner = self._account.uid if self._account else os.geteuid()
        if self.socket_dir.is_symlink() or self.socket_dir.stat().st_uid not in {owner, os.geteuid()}:
            raise DataDirForeign(data_dir=self.socket_dir, found="another user", wanted=self.mark)
        if self._account is not None:
            os.chown(self.socket_dir, self._account.uid, self._account.gid)

    def _pid_file_lines(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []


async def _copy_where_unreadable(account: Account) -> ProgramCopy | None:
    programs = binaries.postgres_programs()
    if programs.readable_by(account):
        return None
    return await asyncio.to_thread(readable_copy, programs, account=account)


def _beside_cwd(path: Path) -> Path:
    """Return the path of something beside the directory that the program works in, from there."""
    return Path("..") / path.name


def _works_in(pid: int, data: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").resolve(strict=True) == data.resolve()
    except FileNotFoundError:
        return Path("/proc/self").exists() is False and is_alive(pid)
    except PermissionError:
        return True


def _environment() -> dict[str, str]:
    """Return the environment for Postgres without ours: PG* variables would change what it does."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
