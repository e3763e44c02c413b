"""The webhook that a job names itself."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from wayline.contracts.base import Frozen
from wayline.contracts.ids import Name

HttpAddress = Annotated[
    str,
    StringConstraints(max_length=2_048, pattern=r"^https?://[^\s/@?#\x00-\x20\x7f]+(?:[/?][^\s\x00-\x20\x7f#]*)?$"),
]
"""An address of a web server, without a user or a fragment."""
JobEvent = Literal["job.completed", "job.failed", "job.cancelled", "job.parked", "approval.requested"]
JOB_EVENTS: tuple[JobEvent, ...] = get_args(JobEvent)
ENDS: tuple[JobEvent, ...] = ("job.completed", "job.failed", "job.cancelled")


class JobWebhook(Frozen):
    """Where a job's own events are sent: an address, or the webhook of a name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: HttpAddress | None = Field(
        default=None,
        description="An address, signed with the secret of the webhook `jobs`. Readers of the job see it.",
    )
    name: Name | None = Field(default=None, description="A webhook of the tenant: its address and its secret.")
    events: tuple[JobEvent, ...] = Field(
        default=ENDS, min_length=1, max_length=len(JOB_EVENTS), description="Which events; unless given, its end."
    )
    content: bool = Field(default=False, description="Send the beginning of the answer as well.")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.url is None) == (self.name is None):
            raise ValueError("give either url or name")
        return self
