"""Only what passes by itself is tried again."""

import asyncpg
import pytest
from asyncpg.exceptions._base import DataError

from wayline.store import PostgresUnavailable
from wayline.store.transient_errors import is_away


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.DiskFullError(),
        asyncpg.OutOfMemoryError(),
        asyncpg.TooManyConnectionsError(),
        asyncpg.ConfigurationLimitExceededError(),
        asyncpg.ReadOnlySQLTransactionError(),
        asyncpg.QueryCanceledError(),
        asyncpg.LockNotAvailableError(),
        asyncpg.DeadlockDetectedError(),
        asyncpg.SerializationError(),
        asyncpg.ObjectInUseError(),
        asyncpg.AdminShutdownError(),
        asyncpg.CannotConnectNowError(),
        asyncpg.PostgresIOError(),
        asyncpg.ConnectionDoesNotExistError(),
        asyncpg.InvalidCachedStatementError(),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_passes_by_itself_is_away(error: Exception):
    assert is_away(error)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.UniqueViolationError(),
        asyncpg.UndefinedTableError(),
        asyncpg.CheckViolationError(),
        asyncpg.InsufficientPrivilegeError(),
        asyncpg.InvalidTextRepresentationError(),
        asyncpg.InterfaceError("another operation is in progress"),
        DataError("value out of int64 range"),
        ValueError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_wrong_statement_is_not_away(error: Exception):
    assert not is_away(error)


def test_a_full_disk_is_named_and_not_called_silence():
    error = PostgresUnavailable(where="db:5432/w", cause="could not extend file", sqlstate="53100")

    assert str(error).startswith("Postgres at db:5432/w cannot do it just now: its disk is full (53100: could not")
    assert (error.why, error.after_s) == ("its disk is full", 1.0)


def test_a_deadlock_is_tried_again_soon():
    assert PostgresUnavailable(where="db", cause="deadlock detected", sqlstate="40P01").after_s == 0.1
