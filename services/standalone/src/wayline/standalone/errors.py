"""Errors of the `wayline` command itself.

WaylineError
└── StandaloneError
    ├── AlreadyRunning     another `wayline up` holds the data directory
    ├── DataDirInvalid     the data directory cannot be made, read or written
    ├── UnknownService     no service has that name
    ├── NoServers          no address of a database is known
    ├── NoStream           the bus has not been migrated
    ├── ClientInvalid      a credential of the bus cannot be made or found
    ├── BackupInvalid      a backup cannot be written there, or is torn, damaged or of another format
    ├── BackupFailed       taking or restoring a backup was given up
    ├── NotEmpty           a backup would be restored over data
    ├── RestoreUnfinished  a restore was ended in its middle
    ├── CannotRotate       a rotation cannot take its next step
    ├── OlderReplicas      processes of the last release do not know what is asked for
    └── ServerLost         an embedded server keeps dying
"""

from __future__ import annotations

from pathlib import Path

from wayline.contracts.errors import WaylineError


class StandaloneError(WaylineError):
    """The root of the command's own errors."""


class AlreadyRunning(StandaloneError):
    """Another `wayline up` holds the data directory."""

    def __init__(self, *, data_dir: Path, pid: int | None, gateway: str | None) -> None:
        who = f"process {pid}" if pid else "another process"
        where = f", answering at {gateway}" if gateway else ""
        super().__init__(
            f"`wayline up` already runs on {data_dir} ({who}{where}). "
            "Stop that one first, or set WAYLINE_DATA_DIR to another directory."
        )


class DataDirInvalid(StandaloneError):
    """The data directory cannot be made, read or written."""

    def __init__(self, *, path: Path, cause: str) -> None:
        super().__init__(
            f"{path}: {cause}. Correct its owner and rights, or set WAYLINE_DATA_DIR to another directory."
        )


class NoStream(StandaloneError):
    """The bus has not been migrated."""

    def __init__(self, *, name: str, cause: str) -> None:
        super().__init__(f"stream {name}: {cause}. `wayline migrate` makes what is missing.")


class ClientInvalid(StandaloneError):
    """A credential of the bus cannot be made, or does not exist."""


class CannotRotate(StandaloneError):
    """A rotation cannot take its next step."""


class OlderReplicas(StandaloneError):
    """Processes of the last release run, which do not know what is asked for."""

    def __init__(self, *, running: str) -> None:
        super().__init__(
            f"not done: of before 0.2.0 there run {running}, which begin such jobs all the same and cannot show those "
            "that wait. Restart them with this version first (`wayline replicas`), or say --allow-older."
        )


class UnknownService(StandaloneError):
    """No service has that name."""

    def __init__(self, *, name: str, known: list[str]) -> None:
        super().__init__(f"there is no service {name!r}; there are: {', '.join(known)}")


class BackupInvalid(StandaloneError):
    """A backup cannot be written there, or is torn, damaged or of another format."""

    def __init__(self, text: str, *, unfinished: bool = False) -> None:
        super().__init__(text)
        self.unfinished = unfinished
        """Whether what is there was begun and never finished."""


class BackupFailed(StandaloneError):
    """Taking or restoring a backup was given up."""


class NotEmpty(StandaloneError):
    """A backup would be restored over data."""

    def __init__(self, found: list[str], *, name: str) -> None:
        super().__init__(
            f"there is data already: {'; '.join(found)}. Restore into an empty installation, or say "
            f"`--replace {name}` to have all of it deleted first."
        )


class RestoreUnfinished(StandaloneError):
    """A restore was ended in its middle."""

    def __init__(self, *, backup: str) -> None:
        super().__init__(
            f"the restore of {backup} was not finished here: run `wayline restore {backup}` once more; it begins anew."
        )


class ServerLost(StandaloneError):
    """An embedded server keeps dying."""

    def __init__(self, *, server: str, times: int, within_s: float, log: Path) -> None:
        super().__init__(
            f"{server} ended {times} times within {within_s:g} s, so `wayline up` stops; its data is kept. "
            f"Its last log lines are in {log}."
        )


class NoServers(StandaloneError):
    """No address of a database is known."""

    def __init__(self, *, data_dir: Path) -> None:
        super().__init__(
            f"the address of Postgres is unknown: `wayline up` was never run on {data_dir}, and WAYLINE_POSTGRES_DSN "
            "is not set. Set it to an administrator's address: migrations create schemas and roles."
        )
