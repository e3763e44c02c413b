"""What a search for spans may be asked for."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from wayline.contracts.money import Dollars
from wayline.contracts.span_search import QUERY_MAX, SPANS_PER_PAGE_MAX, SearchSpans, SpanStatus
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.job_query import Line, Moment


class SpanQuery(BaseModel):
    """Conditions that spans meet, all of them, and the page that is wanted."""

    q: Annotated[str, StringConstraints(min_length=1, max_length=QUERY_MAX, pattern=ONE_LINE)] | None = Field(
        default=None, description="Words of a span's name or attributes, as they stand there; or an id's beginning."
    )
    agent: Line | None = Field(default=None, description="Only spans in traces of its jobs.")
    model: Line | None = Field(default=None, description="Only calls of this model.")
    tool: Line | None = Field(default=None, description="Only calls of this tool.")
    service: Line | None = Field(default=None, description="Who made the span, such as `executor`.")
    name: Line | None = Field(default=None, description="The whole name, such as `chat gpt-5`.")
    status: SpanStatus | None = None
    seconds_min: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="An open span has lasted until now."
    )
    seconds_max: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cost_min: Dollars | None = Field(default=None, description="USD, of the span alone; unknown costs are left out.")
    since: Moment | None = Field(default=None, description="Only spans that began then or later.")
    until: Moment | None = Field(default=None, description="Only spans that began before.")
    limit: int = Field(default=50, ge=1, le=SPANS_PER_PAGE_MAX)
    cursor: str | None = Field(
        default=None, max_length=500, pattern=ONE_LINE, description="`next_cursor` of the page before."
    )

    def asked(self, tenant: str, *, user_id: str | None) -> SearchSpans:
        """Return the question that tracing answers."""
        return SearchSpans(tenant=tenant, user_id=user_id, **self.model_dump())
