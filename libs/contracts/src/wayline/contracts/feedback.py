"""What people and programs think of a job: kept by tracing, beside what the job did."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, model_validator

from wayline.contracts.base import Frozen, Request
from wayline.contracts.ids import NAME_PATTERN, JobId

FEEDBACK_MAX: Final = 100
"""Judgements of one job."""
COMMENT_MAX: Final = 4_000
SCORES: Final = {"up": 1.0, "down": 0.0}
"""Labels that say a score."""
GOOD_FROM: Final = 0.5
"""The mean score from which on a job counts as judged well."""

FeedbackIs = Literal["up", "down", "none", "any"]
FeedbackKey = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
FeedbackLabel = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,64}$")]
FeedbackBy = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,200}$")]
FeedbackComment = Annotated[str, StringConstraints(max_length=COMMENT_MAX, pattern=r"^[^\x00]*$")]


class FeedbackSummary(Frozen):
    """What was thought of a job, in all."""

    judgements: int
    score: float | None = Field(default=None, description="The mean of those that have a score; null: none has.")
    labels: dict[str, int] = Field(default_factory=dict, description="How many named each label.")


class Feedback(Frozen):
    """One judgement of a job: the last one by this name about this key."""

    by: str
    key: str
    score: float | None = None
    label: str | None = None
    comment: str = ""
    at: datetime


class FeedbackList(Frozen):
    """The judgements of a job, the newest first."""

    feedback: tuple[Feedback, ...]
    summary: FeedbackSummary | None = Field(default=None, description="Null: there is none.")


class GiveFeedback(Request, subject="feedback.give.{tenant}", replies=Feedback):
    """Judge a job. By the same name about the same key it replaces what was said before; the same again is nothing."""

    job_id: JobId
    by: FeedbackBy
    key: FeedbackKey = Field(default="feedback", description="What is judged, such as `helpful`.")
    score: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    label: FeedbackLabel | None = Field(default=None, description="`up` without a score is 1, `down` is 0.")
    comment: FeedbackComment = ""

    @model_validator(mode="after")
    def _judges(self) -> GiveFeedback:
        if self.score is None and self.label is None:
            raise ValueError("give a score or a label")
        return self


class ListFeedback(Request, subject="feedback.list.{tenant}", replies=FeedbackList):
    """Ask what was thought of a job."""

    job_id: JobId
