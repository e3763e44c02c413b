"""Bodies about who changed what."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from wayline.gateway.paging import Paged
from wayline.gateway.shapes.job_query import Line, Moment, Short


class AuditEntry(BaseModel):
    """One change, or the try of one."""

    id: int
    at: datetime
    kind: str = Field(description="Such as `agent`, `API key`, `budget`, `approval`.")
    name: str = Field(description="Of what was changed: its parts joined by slashes. Empty: it had none yet.")
    operation: str = Field(description="Of the HTTP interface, such as `put_agent`.")
    by: str = Field(description="The name of the API key; `local` without one.")
    key_id: str | None = None
    is_operator: bool = Field(description="Whether the key may administer all tenants.")
    user_id: str | None = Field(default=None, description="Of a key of one user.")
    trace_id: str | None = Field(default=None, description="Of the request.")
    before: str | None = Field(default=None, description="The entity tag of what was there; null: nothing, or no tag.")
    after: str | None = Field(default=None, description="The entity tag of what is there since.")
    detail: str = Field(default="", description="Of an approval the decision.")
    outcome: Literal["made", "refused", "failed"] | None = Field(
        description="`failed`: an error came in between, and the change may have been made. Null: it is under way, or "
        "its process was killed, and it may have been made."
    )
    code: str | None = Field(default=None, description="Why it was refused or failed.")


class AuditPage(Paged):
    """Changes, the newest first."""

    entries: tuple[AuditEntry, ...]


class AuditQuery(BaseModel):
    """Which changes are meant."""

    kind: Short | None = None
    name: Line | None = None
    by: Line | None = Field(default=None, description="The name of the key.")
    key_id: Short | None = None
    since: Moment | None = None
    until: Moment | None = None
