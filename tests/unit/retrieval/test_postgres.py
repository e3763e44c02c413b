"""Only what passes by itself is tried again."""

import asyncpg
import pytest
from asyncpg.exceptions._base import DataError

from wayline.contracts.errors import Retry
from wayline.retrieval.adapters.postgres import reachable


@pytest.mark.parametrize(
    "raised",
    [
        ConnectionRefusedError(),
        asyncpg.ConnectionDoesNotExistError(),
        asyncpg.AdminShutdownError("shutting down"),
        asyncpg.DeadlockDetectedError("deadlock detected"),
        asyncpg.InterfaceError("connection is closed"),
    ],
)
def test_a_postgres_that_is_away_or_busy_is_asked_again(raised: Exception):
    with pytest.raises(Retry), reachable():
        raise raised


@pytest.mark.parametrize("raised", [DataError("value out of int64 range"), asyncpg.UndefinedTableError()])
def test_a_mistake_is_not_tried_for_ever(raised: Exception):
    with pytest.raises(type(raised)), reachable():
        raise raised
