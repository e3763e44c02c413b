"""The events of a job, read by a tenant's own services in place of what they missed."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from wayline.contracts.base import Frozen, Request
from wayline.contracts.ids import JobId


class EventPage(Frozen):
    """Some events of a job, as its log has them: what was moved out of a record for its size stays out."""

    events: tuple[dict[str, Any], ...] = ()
    after: int = Field(default=0, ge=0, description="The place of the last record that was read: the next page's.")
    more: bool = Field(default=False, description="Whether the log goes on.")


class ReadEvents(Request, subject="jobs.events.{tenant}", replies=EventPage):
    """Read the events of a job; one that has no log yet has none."""

    from_clients = True

    job_id: JobId
    after: int = Field(default=0, ge=0, description="The place in the stream of the last record that is known.")
