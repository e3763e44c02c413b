"""Bodies about failures of one cause and their redrives."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from wayline.gateway.paging import Paged
from wayline.gateway.shapes.body import Body


class FailureGroup(BaseModel):
    """Failed jobs and dead letters of one cause."""

    fingerprint: str
    code: str
    message: str = Field(description="Of the newest of them.")
    jobs: int = 0
    letters: int = 0
    example: str | None = Field(default=None, description="The newest job.")
    first_at: datetime | None = None
    last_at: datetime | None = None


class FailureGroupList(Paged):
    """A page of what failed, by cause."""

    groups: tuple[FailureGroup, ...] = Field(description="The most frequent first; of the newest 2,000 failed jobs.")


class RedriveBody(Body):
    """Which failed jobs go on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"fingerprint": "5f2a9c01d7e84b36", "dry_run": True}]})

    fingerprint: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    dry_run: bool = Field(default=False, description="Say what would become of each job; begin nothing.")
    limit: int = Field(
        default=100,
        ge=1,
        le=1_000,
        description="How many go on at most, the newest first; those redriven before not counted.",
    )


class RedrivenJob(BaseModel):
    """What became of one failed job."""

    job_id: str
    fork_id: str | None = Field(default=None, description="The job that goes on in its place.")
    after: int | None = Field(default=None, description="The last event that both share.")
    outcome: Literal["forked", "already", "refused"]
    reason: str = Field(default="", description="Why it was refused.")


class RedrivenLetter(BaseModel):
    """What became of one dead letter: a submission is submitted again, any other message is not."""

    sequence: int
    subject: str
    job_id: str | None = Field(default=None, description="The job that was submitted again.")
    outcome: Literal["resubmitted", "already", "refused"] = Field(
        description="`already`: the job has a log; `refused`: sent again, the message might act twice, or fail again."
    )
    reason: str = Field(default="", description="Why it was refused.")


class Redrive(BaseModel):
    """What a redrive began; with `dry_run` what it would begin."""

    fingerprint: str
    dry_run: bool
    jobs: tuple[RedrivenJob, ...]
    letters: tuple[RedrivenLetter, ...] = Field(
        default=(), description="The dead letters of the cause; one that was submitted again is dismissed."
    )
    more: bool = Field(description="There are more: redrive again.")
    stopped: str | None = Field(default=None, description="Why it stopped before its limit.")


class PastRedrive(BaseModel):
    """Who let failed jobs go on."""

    redrive_id: str
    fingerprint: str
    redriven_by: str
    jobs: int = Field(description="That failed of the cause then, and its dead letters.")
    forked: int | None = Field(
        description="Or submitted again, of dead letters. None: it was cut off, and to redrive again is safe."
    )
    already: int | None
    refused: int | None
    begun_at: datetime
    finished_at: datetime | None


class RedriveList(Paged):
    """A page of the redrives of a tenant."""

    redrives: tuple[PastRedrive, ...] = Field(description="Newest first.")
