"""The errors of Postgres that pass by themselves: one list for every service.

A statement that met one of them may succeed later, unchanged. Whether it took effect is not known where the connection
was lost, so what is repeated must bear it.
"""

from __future__ import annotations

import asyncpg

CLASSES = frozenset(
    {
        "08",  # the connection is lost
        "53",  # no disk, memory or connection is left
        "57",  # an operator intervened: shutdown, crash, cancelled statement
        "58",  # the system below Postgres failed: an error of its disk
    }
)
STATES = frozenset(
    {
        "25006",  # the transaction may only read: a standby, or an operator who protects a full disk
        "25P03",  # the transaction was idle too long, its connection is gone
        "25P04",  # the transaction took too long, its connection is gone
        "40001",  # another transaction came first
        "40P01",  # deadlock: this one was chosen to give way
        "55006",  # another session uses the object
        "55P03",  # the lock was not granted in time
    }
)
REASONS = {
    "0A000": "its tables have just been changed",
    "25006": "it is read-only",
    "40001": "another transaction came first",
    "40P01": "another transaction came first",
    "53100": "its disk is full",
    "53200": "it is out of memory",
    "53300": "it takes no more connections",
    "53400": "one of its limits is reached",
    "55P03": "a lock was not granted in time",
    "57014": "a statement took too long",
    "57P01": "it is being shut down",
    "57P02": "it crashed",
    "57P03": "it is starting or stopping",
}
"""Short words for people: a probe and an HTTP answer show them."""
COMES_AGAIN_S = {"0A000": 0.1, "40001": 0.1, "40P01": 0.1}
"""How soon to try again where it is not a second."""


def is_away(error: BaseException) -> bool:
    """Return whether the same statement may succeed later."""
    # A migration has added a column to what a running service selects: the next plan is made anew.
    if isinstance(error, asyncpg.InvalidCachedStatementError):
        return True
    if isinstance(error, asyncpg.PostgresError):
        state = sqlstate(error)
        return state[:2] in CLASSES or state in STATES
    # asyncpg raises TimeoutError for a statement that took longer than the command timeout.
    return isinstance(error, TimeoutError)


def sqlstate(error: BaseException) -> str:
    """Return the five characters that Postgres gave an error; empty where it gave none."""
    return getattr(error, "sqlstate", None) or ""
