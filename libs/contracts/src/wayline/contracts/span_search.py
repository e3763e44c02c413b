"""Looking for spans of a tenant, of jobs and of what its own programs sent, as tracing answers it."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from wayline.contracts.base import Frozen, Request, Usd
from wayline.contracts.money import Usage

QUERY_MAX = 200
"""Characters of the words that spans are looked for by."""
SPANS_PER_PAGE_MAX = 200
ATTRIBUTES_MAX = 16
"""Attributes that a search may name."""
SpanStatus = Literal["ok", "error", "unset", "open"]


class FoundSpan(Frozen):
    """A span, without those below it."""

    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    name: str
    service: str
    kind: str = "internal"
    start: datetime
    duration_ms: float | None = Field(default=None, description="None while the span is open.")
    status: SpanStatus
    attributes: dict[str, Any] = Field(default_factory=dict)
    usage: Usage | None = None
    cost_usd: Usd | None = None


class SpanPage(Frozen):
    """Some spans, newest first; `next_cursor` asks for more, and a page may have fewer than were asked for."""

    spans: tuple[FoundSpan, ...]
    next_cursor: str | None = None


class SearchSpans(Request, subject="traces.search.{tenant}", replies=SpanPage):
    """Page through those of a tenant's spans that meet every condition, the newest first."""

    limit: int = Field(default=50, ge=1, le=SPANS_PER_PAGE_MAX)
    cursor: str | None = None
    q: str | None = Field(
        default=None, max_length=QUERY_MAX, description="In the name or the attributes; or an id's beginning."
    )
    trace_ids: bool = Field(default=False, description="One span a trace: the newest that meets the conditions.")
    agent: str | None = Field(default=None, max_length=200, description="Only in traces of its jobs.")
    user_id: str | None = Field(default=None, max_length=200, description="Only in traces of this user's jobs.")
    model: str | None = Field(default=None, max_length=200)
    tool: str | None = Field(default=None, max_length=200)
    service: str | None = Field(default=None, max_length=256)
    name: str | None = Field(default=None, max_length=256)
    status: SpanStatus | None = None
    seconds_min: float | None = Field(default=None, ge=0, description="An open span has lasted until now.")
    seconds_max: float | None = Field(default=None, ge=0)
    cost_min: Decimal | None = Field(default=None, ge=0, description="USD, of this span alone.")
    attributes: dict[str, str] = Field(default_factory=dict, max_length=ATTRIBUTES_MAX, description="All of them.")
    since: datetime | None = None
    until: datetime | None = Field(default=None, description="Only spans that began before.")


class SpanName(Frozen):
    """What a service calls some of its spans."""

    service: str
    name: str
    kind: str = "internal"
    spans: int


class SpanNames(Frozen):
    """The names of a tenant's newest spans, the most frequent first."""

    names: tuple[SpanName, ...]


class ListSpanNames(Request, subject="traces.names.{tenant}", replies=SpanNames):
    """Ask how a tenant's newest spans are called, and by which services."""

    user_id: str | None = Field(default=None, max_length=200, description="Only in traces of this user's jobs.")
