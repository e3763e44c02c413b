"""The rows that tracing writes: fields in the order of Postgres's row types, and nothing that Postgres would refuse."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel

from wayline.contracts.base import Frozen, Usd
from wayline.contracts.jobs import Child, Decision, Origin, Parent, Route, SubmittedBy, TaintSource

NOBODY = "-"
"""The tenant of a span whose job and owner are not known; no tenant can have this name."""

Json = str | None


class BeyondColumns(Frozen):
    """What a job's view shows and no column of its own holds: nobody asks for jobs by it."""

    route: Route | None = None
    total_cost_usd: Usd | None = Decimal(0)
    origin: Origin | None = None
    handed_to: str | None = None
    parent: Parent | None = None
    children: tuple[Child, ...] = ()
    submitted_by: SubmittedBy | None = None
    tainted_by: TaintSource | None = None
    decisions: tuple[Decision, ...] = ()
    decided_at: str | None = None
    """When people last decided on its calls, in UTC: an index finds jobs by it."""
    agent_label: str | None = None


class JobRow(NamedTuple):
    """A row of the table `jobs`."""

    tenant: str
    job_id: str
    seq: int
    trace_id: str
    status: str
    agent: str
    agent_version: int | None
    session_id: str | None
    user_id: str | None
    provider: str | None
    model: str | None
    tier: str | None
    route_reason: str | None
    estimated_cost_usd: Decimal | None
    steps: int
    usage: Json
    tokens: int
    cost_usd: Decimal | None
    costs: Json
    answer: str | None
    partial: bool
    reason: str | None
    citations: Json
    error_code: str | None
    error_message: str | None
    waiting_for: Json
    created_at: datetime
    ended_at: datetime | None
    input: str | None
    fingerprint: str | None
    schedule: Json
    lane: str
    beyond: Json
    tags: list[str] | None
    words: list[str] | None
    """What it is found by, once it has ended."""


class StepRow(NamedTuple):
    """A row of the table `steps`."""

    tenant: str
    job_id: str
    step: int
    seq: int
    started_at: datetime
    thought: str
    tool: str | None
    input: Json
    output: str | None
    calls: Json
    duration_ms: float | None
    status: str


class LedgerRow(NamedTuple):
    """A row of the table `ledger`."""

    tenant: str
    job_id: str
    attempt_id: str
    seq: int
    step: int
    kind: str
    provider: str | None
    model: str | None
    tool: str | None
    agent: str
    user_id: str | None
    session_id: str | None
    input_tokens: int
    cache_read_tokens: int
    cache_write_5m_tokens: int
    cache_write_1h_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: Decimal | None
    open: bool
    settled: bool
    at: datetime
    purpose: str | None
    saved_usd: Decimal | None
    lower_usd: Decimal | None
    upper_usd: Decimal | None
    cache_break: str | None = None


class SpanRow(NamedTuple):
    """A row of the table `spans`."""

    trace_id: str
    span_id: str
    start: datetime
    tenant: str
    parent_span_id: str | None
    anchor: str | None
    service: str
    name: str
    kind: str
    duration_ms: float | None
    status: str
    attributes: Json
    links: Json
    events: Json
    usage: Json
    cost_usd: Decimal | None
    seq: int


@dataclass
class Rows:
    """What one transaction writes."""

    jobs: list[JobRow] = field(default_factory=list)
    steps: list[StepRow] = field(default_factory=list)
    ledger: list[LedgerRow] = field(default_factory=list)
    spans: list[SpanRow] = field(default_factory=list)


def clean(text: str) -> str:
    """Return text as Postgres accepts it, without NUL."""
    return text.replace("\x00", "\ufffd") if "\x00" in text else text


def moment(at: datetime) -> str:
    """Return a moment so that texts sort as moments do."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def as_json(value: Any) -> str:
    """Encode a value for a jsonb column."""
    return _clean_json(orjson.dumps(value, default=str))


def model_json(value: BaseModel) -> str:
    """Encode a model for a jsonb column, without its defaults."""
    return _clean_json(value.__pydantic_serializer__.to_json(value, exclude_defaults=True))


def _clean_json(encoded: bytes) -> str:
    text = encoded.decode()
    return text.replace("\\u0000", "\\ufffd") if "\\u0000" in text else text
