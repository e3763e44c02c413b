"""What every event of a job's log says, whatever happened."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from wayline.contracts.base import Frozen


class SpanRef(Frozen):
    """The span that an event belongs to; its id is derived, so a redelivered step lands on the same span."""

    trace_id: str
    span_id: str


class Event(Frozen):
    """Something that happened to a job, and is true from then on."""

    job_id: str
    seq: int = Field(ge=1, description="Place in the job's log, from 1 without gaps; the SSE id.")
    at: datetime
    trace: SpanRef
    type: str
