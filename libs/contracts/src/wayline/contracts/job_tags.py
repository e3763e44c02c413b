"""Labels that jobs are given after they were submitted: kept by tracing, beside what their logs say."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from wayline.contracts.base import Frozen, Request
from wayline.contracts.ids import JobId
from wayline.contracts.jobs import TAGS_MAX, Tag

TAGGED_AT_ONCE = 200


class TaggedJobs(Frozen):
    """The jobs that have their labels now."""

    job_ids: tuple[str, ...]


class TagJobs(Request, subject="jobs.tag.{tenant}", replies=TaggedJobs):
    """Add labels to jobs and take others away; the same again changes nothing.

    A job that would have more than it may is left as it is, and is not in the answer.
    """

    job_ids: Annotated[tuple[JobId, ...], Field(min_length=1, max_length=TAGGED_AT_ONCE)]
    add: tuple[Tag, ...] = Field(default=(), max_length=TAGS_MAX)
    remove: tuple[Tag, ...] = Field(default=(), max_length=TAGS_MAX)
