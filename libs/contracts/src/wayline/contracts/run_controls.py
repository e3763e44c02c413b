"""What people set about when jobs run: pauses, and limits on how many run at once.

Each is a row of the router's, and a key of the bucket CONTROLS by which executors know whether they have to ask.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, StringConstraints

from wayline.contracts.base import Frozen, Request

PauseKind = Literal["agent", "lane", "tenant"]
Whose = Literal["agent", "user", "key"]
WhenFull = Literal["wait", "refuse"]
REASON_MAX: Final = 200
NAME_MAX: Final = 128
PAUSES_MAX: Final = 200
"""Of one tenant."""
RUNNING_LIMITS_MAX: Final = 200
"""Of one tenant."""
RUNNING_MAX: Final = 100_000
EACH: Final = "*"
"""In the place of a name: each one that has no limit of its own."""

Named = Annotated[str, StringConstraints(min_length=1, max_length=NAME_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]
Reason = Annotated[str, StringConstraints(max_length=REASON_MAX, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Pause(Frozen):
    """An agent, a lane or a tenant whose jobs wait."""

    kind: PauseKind
    tenant: str = Field(description="Whose agent it is, or the tenant itself; empty: of a lane, which all have.")
    name: str = Field(description="Of the agent, the lane or the tenant.")
    reason: str = ""
    by: str = Field(description="The name of the key with which it was paused.")
    since: datetime
    now: bool = Field(
        default=False, description="Jobs that run wait as well, from their next step on; else they go on to their end."
    )

    @property
    def words(self) -> str:
        """Return who paused what, since when and why."""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.kind} {self.name} was paused by {self.by} at {self.since:%Y-%m-%d %H:%M} UTC{why}"


class PauseList(Frozen):
    """Pauses in force: of lanes, then of one tenant."""

    pauses: tuple[Pause, ...]


class PutPause(Request, subject="pauses.put.{tenant}", replies=Pause):
    """Pause an agent of a tenant, the tenant itself, or a lane of all tenants; one that is paused keeps its time."""

    terse = True

    kind: PauseKind
    name: Named
    reason: Reason = ""
    by: str
    now: bool = False


class ListPauses(Request, subject="pauses.list.{tenant}", replies=PauseList):
    """Ask what is paused for a tenant."""


class PauseEnded(Frozen):
    """Whether there was such a pause."""

    ended: bool


class EndPause(Request, subject="pauses.end.{tenant}", replies=PauseEnded):
    """Let jobs go on that wait for a pause."""

    kind: PauseKind
    name: Named


class RunningLimit(Frozen):
    """How many jobs of an agent, of a user or of an API key run at once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    whose: Whose
    name: Named = Field(
        description="Of the agent, of the user, or the id of the key; `*`: each one without a limit of its own."
    )
    max_running: int = Field(ge=1, le=RUNNING_MAX)
    when_full: WhenFull = Field(
        default="wait", description="What a job does that would be one too many: wait for a place, or be refused."
    )


class RunningLimitInForce(RunningLimit):
    """A limit as it was saved, and how many jobs count in it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tenant: str
    running: int | None = Field(default=None, description="Jobs that have a place now; null where each has its own.")
    waiting: int | None = Field(default=None, description="Jobs that wait for one.")


class RunningLimitList(Frozen):
    """The limits of a tenant, by whose they are and by name."""

    limits: tuple[RunningLimitInForce, ...]


class PutRunningLimit(Request, subject="runlimits.put.{tenant}", replies=RunningLimitInForce):
    """Limit how many jobs run at once; those that run already go on."""

    terse = True

    limit: RunningLimit


class ListRunningLimits(Request, subject="runlimits.list.{tenant}", replies=RunningLimitList):
    """Ask for a tenant's limits."""


class RunningLimitDeleted(Frozen):
    """Whether there was such a limit."""

    deleted: bool


class DeleteRunningLimit(Request, subject="runlimits.delete.{tenant}", replies=RunningLimitDeleted):
    """Take a limit away."""

    whose: Whose
    name: Named


class Permit(Frozen):
    """Whether a job may run now."""

    granted: bool
    why: Literal["pause", "limit"] | None = Field(default=None, description="What it waits for.")
    words: str = Field(default="", description="The same for people.")
    refuses: bool = Field(
        default=True,
        description="Of `CheckPlace`; false: no limit of the tenant refuses jobs, it need not ask for each job.",
    )


class AskPermit(Request, subject="permits.ask.{tenant}", replies=Permit):
    """Ask whether a job may run that its executor is about to begin or to go on with; asking again changes nothing."""

    job_id: str
    at: int = Field(description="The record that made it runnable: a later permit names a later one.")
    lane: str
    agent: str
    user_id: str | None = None
    key_id: str | None = None
    begun: bool = Field(
        default=False, description="It was under way before: only a pause that stops jobs at once holds it."
    )


class CheckPlace(Request, subject="permits.check.{tenant}", replies=Permit):
    """Ask whether a new job would be let in now, or refused by a limit; it takes no place."""

    agent: str
    user_id: str | None = None
    key_id: str | None = None


class ParkNoted(Frozen):
    """The router knows of it."""


class NoteParked(Request, subject="permits.parked.{tenant}", replies=ParkNoted):
    """Tell that a job is parked: it has no place any more, and is woken once what it waits for is over."""

    job_id: str
    at: int = Field(description="The record that parked it.")
    lane: str
    why: str = Field(description="As its `waiting.why`; `pause` and `limit` are woken by the router.")
