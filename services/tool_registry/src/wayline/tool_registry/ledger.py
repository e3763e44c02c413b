"""What a row of the ledger allows: the rules of a repeated key, as a pure function."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wayline.contracts.tools import Effect, ToolReply


class State(StrEnum):
    """What the ledger knows of a key."""

    STARTED = "started"
    FINISHED = "finished"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Row:
    """A key's row, with the database's word on time."""

    state: State
    effect: Effect
    attempt: int
    owner: str
    live: bool
    """Its lease had not run out when the row was read."""
    late: bool
    """The caller's deadline had passed when the row was read."""
    result: ToolReply | None = None


class Next(StrEnum):
    """What may be done with a key that somebody has begun."""

    STORED = "stored"
    UNKNOWN = "unknown"
    WAIT = "wait"
    AGAIN = "again"
    ASK_TOOL = "ask tool"
    GIVE_UP = "give up"


def next_step(row: Row, *, attempts_max: int) -> Next:
    """The one thing to do with a row that is not ours; nothing here executes a `once` tool a second time."""
    if row.state is State.FINISHED:
        return Next.STORED
    if row.state is State.UNKNOWN:
        return Next.UNKNOWN
    if row.live:
        return Next.WAIT
    if row.effect is Effect.ONCE or row.late or row.attempt >= attempts_max:
        return Next.GIVE_UP
    return Next.ASK_TOOL if row.effect is Effect.RECONCILE else Next.AGAIN
