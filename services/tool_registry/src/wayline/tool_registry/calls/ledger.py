"""The ledger of calls: decide what a row allows, and declare what may be done to a row."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from wayline.contracts.tools import CallTool, Effect, ToolReply
from wayline.tool_registry.errors import ToolKeyConflict

# Counts the time a suspended machine slept, too, where the system has such a clock.
LEASE_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class State(StrEnum):
    """What the ledger knows of a key."""

    STARTED = "started"
    FINISHED = "finished"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Row:
    """A key's row, judged by the database's clock."""

    state: State
    effect: Effect
    attempt: int
    owner: str
    live: bool
    """Its lease had not run out when the row was read."""
    late: bool
    """The caller's deadline had passed when the row was read."""
    result: ToolReply | None = None
    content_hash: str | None = None
    """Of what was asked for under the key; None: nobody has said so, as of a key that was voided before it began."""

    def require_same(self, ask: CallTool) -> None:
        """Pass for a call with the row's content. Raises ToolKeyConflict."""
        if self.content_hash is not None and self.content_hash != ask.content_hash():
            raise ToolKeyConflict(key=ask.key)


@dataclass
class Lease:
    """Our lease on a key, and when we last asked the database for it."""

    tenant: str
    key: str
    attempt: int
    owner: str
    asked_at: float = field(repr=False)

    @property
    def age_s(self) -> float:
        """Return an age that is never less than the age by the database's clock: counted from before we asked."""
        return time.clock_gettime(LEASE_CLOCK) - self.asked_at


class NextStep(StrEnum):
    """What to do with a key that was begun before."""

    STORED = "stored"
    UNKNOWN = "unknown"
    WAIT = "wait"
    AGAIN = "again"
    ASK_TOOL = "ask tool"
    GIVE_UP = "give up"
    LOSE = "lose"


def next_step(row: Row, *, attempts_max: int) -> NextStep:
    """Return the one thing to do with a row that is not ours; nothing here executes a `once` tool a second time.

    Only a `read` tool that charges has a row: it is not called again, because that could be paid for a second time and
    no more than one call is held. No person is asked either, because it did nothing but charge.
    """
    if row.state is State.FINISHED:
        return NextStep.STORED
    if row.state is State.UNKNOWN:
        return NextStep.UNKNOWN
    if row.live:
        return NextStep.WAIT
    if row.effect is Effect.READ:
        return NextStep.LOSE
    if row.effect is Effect.ONCE or row.late or row.attempt >= attempts_max:
        return NextStep.GIVE_UP
    return NextStep.ASK_TOOL if row.effect is Effect.RECONCILE else NextStep.AGAIN


class Ledger(Protocol):
    """The rows of the keys; every change of a row is one compare-and-set.

    Every method raises LedgerUnavailable where the ledger gave no answer, for any reason.
    """

    lease_s: float

    async def begin(self, ask: CallTool, *, effect: Effect, owner: str) -> Lease | None: ...

    async def find(self, tenant: str, key: str, *, deadline: datetime) -> Row | None: ...

    async def stored(self, tenant: str, key: str) -> ToolReply: ...

    async def take(self, ask: CallTool, *, seen: int, owner: str) -> Lease | None: ...

    def regain(self, ask: CallTool, row: Row) -> Lease: ...

    async def renew(self, lease: Lease) -> bool: ...

    async def finish(self, lease: Lease, reply: ToolReply) -> bool: ...

    async def disown(self, lease: Lease) -> bool: ...

    async def give_up(self, tenant: str, key: str, *, seen: int) -> bool: ...

    async def resolve(self, tenant: str, key: str, *, job_id: str, reply: ToolReply) -> bool: ...

    async def void(self, ask: CallTool, reply: ToolReply) -> bool: ...

    async def keep_read(self, ask: CallTool, reply: ToolReply) -> None: ...

    async def lose(self, tenant: str, key: str, reply: ToolReply) -> bool: ...

    async def forget(self, *, after_days: int) -> None: ...
