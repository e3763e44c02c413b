"""Bodies about what is thought of a job."""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, Field, model_validator

from wayline.contracts.feedback import FeedbackBy, FeedbackComment, FeedbackKey, FeedbackLabel
from wayline.gateway.shapes.body import Body


class FeedbackBody(Body):
    """What a person or a program thinks of a job: a score, a label, or both."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"label": "up", "comment": "It named its sources."},
                {"score": 0.8, "key": "helpful", "by": "judge-model"},
            ]
        }
    )

    score: float | None = Field(default=None, ge=0, le=1, description="0 is the worst, 1 the best.")
    label: FeedbackLabel | None = Field(
        default=None, description="A word of yours. `up` without a score is 1, `down` is 0."
    )
    comment: FeedbackComment = ""
    key: FeedbackKey = Field(default="feedback", description="What is judged, such as `helpful`.")
    by: FeedbackBy | None = Field(
        default=None, description="Who thinks so: a user or a program. Left out: the user of the API key, or its name."
    )

    @model_validator(mode="after")
    def _judges(self) -> Self:
        if self.score is None and self.label is None:
            raise ValueError("give a score or a label")
        return self
