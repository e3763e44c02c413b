"""What happens to a tenant's jobs, told in one stream: without the words, which stand in the events of each job."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from wayline.contracts.events import EVENT_TYPES
from wayline.gateway.shapes.job_query import Line

_KINDS: Final = {f"{name.partition('.')[0]}.*" for name in EVENT_TYPES}
_SHOWN: Final = (
    *("step", "attempt", "provider", "model", "call", "tool", "status", "effect", "cost_usd", "duration_ms"),
    *("approval_id", "decision", "by", "budget_usd", "agent_version"),
)
"""Fields of events that are numbers, names or single words."""
SHOWN_CHARS_MAX: Final = 200


class TenantEvent(BaseModel):
    """An event of a job, by what it is about."""

    job_id: str
    seq: int = Field(description="Its place in the job's log: `GET /v1/jobs/{id}/events?after=` tells it whole.")
    type: str
    at: datetime
    agent: str | None = Field(default=None, description="Null: the beginning of the job's log is gone.")
    user_id: str | None = None
    session_id: str | None = None
    error: str | None = Field(default=None, description="The code of what went wrong.")
    waiting_for: str | None = Field(default=None, description="Why the job was parked, such as `approval`.")
    about: dict[str, Any] = Field(
        default_factory=dict, description=f"Where the event has them: {', '.join(f'`{name}`' for name in _SHOWN)}."
    )


class Gap(BaseModel):
    """What a client asked to be told of again, and is not: it was longer ago than an hour."""

    after: str = Field(description="The `Last-Event-ID` that it sent.")
    since: datetime = Field(description="What happened from here on follows. For what came before: `GET /v1/jobs`.")


def known_type(name: str) -> str:
    """Refuse what no event is called; `job.*` means all of one kind."""
    if name not in EVENT_TYPES and name not in _KINDS:
        raise ValueError(f"{name[:64]!r} is no type of an event, such as job.completed, or of a kind, such as job.*")
    return name


def _all_known(types: str) -> str:
    return ",".join(known_type(name.strip()) for name in types.split(","))


EventTypes = Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_all_known)]


class EventFilter(BaseModel):
    """Which events a client wants to hear of."""

    types: EventTypes | None = Field(
        default=None, description="Joined by commas: `job.completed,job.failed`; `job.*` is all of that kind."
    )
    agent: list[Line] = Field(default=[], max_length=50, description="Several: repeat the parameter.")
    user_id: Line | None = Field(default=None, description="Only jobs of this user.")

    def wants(self, event: TenantEvent) -> bool:
        """Return whether an event meets all conditions."""
        if self.types is not None:
            wanted = self.types.split(",")
            if event.type not in wanted and f"{event.type.partition('.')[0]}.*" not in wanted:
                return False
        if self.agent and event.agent not in self.agent:
            return False
        return self.user_id is None or event.user_id == self.user_id


def shown_event(
    value: dict[str, Any], *, agent: str | None, user_id: str | None, session_id: str | None
) -> TenantEvent:
    """Return an event of a log as a tenant's stream tells it."""
    error, waiting = value.get("error"), value.get("waiting")
    return TenantEvent(
        job_id=value["job_id"],
        seq=value["seq"],
        type=value["type"],
        at=value["at"],
        agent=agent,
        user_id=user_id,
        session_id=session_id,
        error=_word(error.get("code")) if isinstance(error, dict) else None,
        waiting_for=_word(waiting.get("why")) if isinstance(waiting, dict) else None,
        about={name: word for name in _SHOWN if (word := _word(value.get(name))) is not None},
    )


def _word(value: Any) -> Any:
    """Return a number or a short text; None for anything else, such as a reference to a large field."""
    if isinstance(value, str):
        return value[:SHOWN_CHARS_MAX]
    return value if isinstance(value, int | float) else None
