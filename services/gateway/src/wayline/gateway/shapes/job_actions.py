"""Bodies about one action on many jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from wayline.contracts.ids import JobId
from wayline.contracts.jobs import TAGS_MAX, Tag
from wayline.contracts.money import Dollars
from wayline.gateway.paging import Paged
from wayline.gateway.shapes.body import TEXT_WITHOUT_NUL, Body, Label
from wayline.gateway.shapes.job_query import JobFilter

JOBS_NAMED_MAX = 1_000
JOBS_MAX = 100_000
"""Jobs of one action."""

Action = Literal["cancel", "raise", "fork", "tag"]
Outcome = Literal["done", "already", "refused"]


class ActionFilter(JobFilter):
    """Conditions of the jobs that are meant."""

    model_config = ConfigDict(extra="forbid")


class ActionBody(Body):
    """What is done, to which jobs."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"action": "cancel", "filter": {"agent": ["crawler"], "status": ["running"]}, "dry_run": True},
                {"action": "tag", "job_ids": ["job_1f2e3d4c5b6a79880011"], "add_tags": ["case:7"]},
                {"action": "raise", "filter": {"waiting_for": ["budget"]}, "budget_usd": "0.50"},
            ]
        }
    )

    action: Action
    filter: ActionFilter | None = Field(default=None, description="As of `GET /v1/jobs`: all that meet it.")
    job_ids: Annotated[tuple[JobId, ...], Field(min_length=1, max_length=JOBS_NAMED_MAX)] | None = None
    limit: int = Field(default=1_000, ge=1, le=JOBS_MAX, description="The most jobs that it is done to.")
    dry_run: bool = Field(default=False, description="Say what would become of the first of them; do nothing.")
    reason: Annotated[str, StringConstraints(max_length=1_000, pattern=TEXT_WITHOUT_NUL)] = Field(
        default="", description="Of a cancel."
    )
    budget_usd: Dollars | None = Field(default=None, description="What each may spend: of a raise, or a fork.")
    model: Label | None = Field(default=None, description="Of a fork: `provider/model` that goes on.")
    add_tags: tuple[Tag, ...] = Field(default=(), max_length=TAGS_MAX)
    remove_tags: tuple[Tag, ...] = Field(default=(), max_length=TAGS_MAX)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.filter is None) == (self.job_ids is None):
            raise ValueError("give either filter or job_ids")
        if self.action == "raise" and self.budget_usd is None:
            raise ValueError("a raise needs budget_usd")
        if (self.action == "tag") != bool(self.add_tags or self.remove_tags):
            raise ValueError("add_tags or remove_tags belong to the action tag, which needs one of them")
        return self


class RefusedJob(BaseModel):
    """A job that the action could not be done to."""

    job_id: str
    reason: str


class ActionProgress(BaseModel):
    """How far an action is."""

    action_id: str | None = Field(default=None, description="Null of a dry run.")
    action: Action
    dry_run: bool = False
    state: Literal["running", "done", "stopped"]
    counts: dict[Outcome, int] = Field(
        description="`already`: there was nothing to do; of what was asked for when a process was killed, too."
    )
    refused: tuple[RefusedJob, ...] = Field(default=(), description="The first 50 of them.")
    more: bool = Field(default=False, description="Of a dry run: there are more jobs than it looked at.")
    waits_for: str | None = Field(
        default=None, description="Why it does not go on just now; of one that was stopped, what stopped it."
    )
    asked: dict[str, Any] = Field(default_factory=dict)
    asked_by: str = ""
    begun_at: datetime | None = None
    moved_at: datetime | None = None
    finished_at: datetime | None = None


class ActionPage(Paged):
    """Actions, the newest first."""

    actions: tuple[ActionProgress, ...]
