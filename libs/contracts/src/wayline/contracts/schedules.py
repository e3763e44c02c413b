"""Schedules: jobs that the router submits by itself, at the moments of a cron expression or at one moment."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, StringConstraints, model_validator

from wayline.contracts.base import Frozen, Request
from wayline.contracts.budgets import TimeZone
from wayline.contracts.chat import Part
from wayline.contracts.ids import Name
from wayline.contracts.jobs import Failure, JobOptions, Status

ONE_LINE = r"^[^\x00-\x1f\x7f]*$"
CRON_MAX_CHARS = 200
JOB_MAX_BYTES = 112 * 1024
"""Of a schedule's job as JSON: what a submission may have."""
FIRINGS_SHOWN_MAX = 200
NEXT_SHOWN = 5
RUN_ID_MAX = 300

Label = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=ONE_LINE)]
Cron = Annotated[str, StringConstraints(max_length=CRON_MAX_CHARS)]
Moment = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]


class ScheduledJob(Frozen):
    """What is submitted at each firing: the body of a submission without an id."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=ONE_LINE)]
    input: str | tuple[Part, ...] = Field(description="Text, or parts: text, image, file by document id.")
    session_id: Label | None = None
    user_id: Label | None = None
    options: JobOptions = JobOptions()


class ScheduleConfig(Frozen):
    """When which job is submitted: by `cron` again and again, or once `at` a moment."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "cron": "0 7 * * MON-FRI",
                    "timezone": "Europe/Berlin",
                    "job": {"agent": "assistant", "input": "What is new?"},
                },
                {"at": "2027-01-01T09:00:00Z", "job": {"agent": "assistant", "input": "Happy new year."}},
            ]
        },
    )

    cron: Cron | None = Field(
        default=None, description="Five fields: minute, hour, day of month, month, day of week; `0 7 * * MON-FRI`."
    )
    timezone: TimeZone = Field(default="UTC", description="IANA name whose clock `cron` means.")
    at: Moment | None = Field(default=None, description="The one moment, with its offset from UTC.")
    job: ScheduledJob
    enabled: bool = True
    missed: Literal["fire_once", "skip"] = Field(
        default="fire_once",
        description="What to do after moments at which no router ran: fire once for the newest of them, where that is "
        "not too long ago, or not at all.",
    )
    overlap: Literal["allow", "skip"] = Field(
        default="allow", description="`skip`: submit nothing while the job of the firing before has not ended."
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.cron is None) == (self.at is None):
            raise ValueError("give either cron or at")
        if self.job.options.dry_run:
            raise ValueError("options.dry_run runs nothing: leave it out of a schedule's job")
        if len(self.job.model_dump_json(exclude_unset=True).encode()) > JOB_MAX_BYTES:
            raise ValueError(f"job has more than {JOB_MAX_BYTES} bytes: give a long input as a document")
        return self


class Firing(Frozen):
    """What became of one moment of a schedule."""

    due_at: datetime
    decided_at: datetime = Field(description="When a router looked at it.")
    cause: Literal["due", "run"] = Field(default="due", description="`run`: it was fired by hand.")
    version: int = Field(description="Of the schedule.")
    outcome: Literal["fired", "skipped", "refused"]
    reason: str = Field(default="", description="Why nothing was submitted, or why the submission was refused.")
    missed: int = Field(default=0, description="Earlier moments that it stands for, too.")
    job_id: str | None = Field(default=None, description="The job that was submitted.")
    status: Status | None = Field(default=None, description="Of the job.")
    error: Failure | None = Field(default=None, description="Of a job that failed.")


class Schedule(ScheduleConfig):
    """A schedule, what comes next and what came of it last."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Name
    version: int = Field(description="It counts changes; a change forgets what was planned.")
    created_at: datetime
    updated_at: datetime
    next_at: datetime | None = Field(default=None, description="None: it is disabled, or no moment is left.")
    next_firings: tuple[datetime, ...] = ()
    firings: tuple[Firing, ...] = Field(default=(), description="Newest first; in a list only the last.")


class ScheduleList(Frozen):
    """Schedules by name."""

    schedules: tuple[Schedule, ...]
    next_after: str | None = Field(default=None, description="The `after` of the next page; null: there is none.")


class ScheduleDeleted(Frozen):
    """Whether there was such a schedule."""

    deleted: bool


class PutSchedule(Request, subject="schedules.put.{tenant}", replies=Schedule):
    """Save a schedule; the same again changes nothing."""

    name: Name
    config: ScheduleConfig
    create: bool = Field(default=False, description="Refuse where there is one of this name.")


class EnableSchedule(Request, subject="schedules.enable.{tenant}", replies=Schedule):
    """Enable or disable a schedule."""

    name: Name
    enabled: bool


class GetSchedule(Request, subject="schedules.get.{tenant}", replies=Schedule):
    """Ask for a schedule, its next and its last firings."""

    name: Name
    limit: int = Field(default=10, ge=0, le=FIRINGS_SHOWN_MAX, description="Of the last firings.")


class ListSchedules(Request, subject="schedules.list.{tenant}", replies=ScheduleList):
    """Page through a tenant's schedules, by name."""

    limit: int = Field(default=50, ge=1, le=200)
    after: str = Field(default="", max_length=64, description="Only schedules whose name is greater.")


class DeleteSchedule(Request, subject="schedules.delete.{tenant}", replies=ScheduleDeleted):
    """Delete a schedule: nothing is fired any more. Its jobs go on."""

    name: Name


class RunSchedule(Request, subject="schedules.run.{tenant}", replies=Firing):
    """Fire a schedule now, whatever it plans; the same `run_id` is the same firing."""

    name: Name
    run_id: str = Field(min_length=1, max_length=RUN_ID_MAX)
