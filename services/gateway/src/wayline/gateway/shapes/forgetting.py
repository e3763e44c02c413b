"""The body of a request to forget."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from wayline.contracts.memory import SubjectRef
from wayline.gateway.shapes.body import ONE_LINE, Body


class ForgetBody(Body):
    """A user or a subject."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": "ann"}]})

    user_id: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=ONE_LINE)] | None = None
    subject: SubjectRef | None = Field(default=None, description="What insights are about: type and id.")

    @model_validator(mode="after")
    def _names_one(self) -> ForgetBody:
        if (self.user_id is None) == (self.subject is None):
            raise ValueError("name a user or a subject")
        return self
