"""Traces, steps and lists of jobs, as tracing answers them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from wayline.contracts.base import Frozen, Message, Request, Usd
from wayline.contracts.events.model_calls import Bounds, Purpose
from wayline.contracts.feedback import FeedbackIs
from wayline.contracts.ids import JobId
from wayline.contracts.jobs import TAGS_MAX, JobView, Lane, QueuePlace, Status
from wayline.contracts.models import TOKENS_MAX
from wayline.contracts.money import Usage
from wayline.contracts.sessions import SESSION_ID_MAX

QUERY_MAX = 200
"""Characters of words that jobs are looked for by."""
JobOrder = Literal["newest", "oldest", "dearest", "slowest"]


class Span(Frozen):
    """One span and its children, oldest first."""

    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    service: str
    kind: str = "internal"
    start: datetime
    duration_ms: float | None = Field(description="Without the time its job was parked; None while the span is open.")
    status: Literal["ok", "error", "unset", "open"]
    attributes: dict[str, Any] = Field(default_factory=dict)
    links: tuple[dict[str, Any], ...] = ()
    events: tuple[dict[str, Any], ...] = Field(
        default=(), description="What happened while it ran: `{name, at, attributes?}`, such as a claim or a wait."
    )
    usage: Usage | None = None
    cost_usd: Usd | None = None
    children: tuple[Span, ...] = ()


class Totals(Frozen):
    """The sums of a trace."""

    duration_ms: float | None
    tokens: int
    cost_usd: Usd | None = Field(description="None: a call whose price is unknown is part of it.")
    spans: int = 0
    missing: int = Field(
        default=0,
        description="Spans that must exist and have not arrived, at least: services send theirs within a second, and "
        "those of a process that was killed are lost.",
    )
    calls_unsettled: int = Field(default=0, description="Calls whose usage never arrived: in no sum.")


class Trace(Frozen):
    """The tree of one job."""

    trace_id: str
    job_id: str | None
    root: Span
    totals: Totals


class StepCall(Frozen):
    """One tool call of a step."""

    call: str
    tool: str
    input: Any = None
    output: str | None = None
    duration_ms: float | None = None
    status: Literal["running", "success", "failed", "skipped"]
    observation: str = Field(default="", description="What it came to, in one line.")


class Step(Frozen):
    """A step of a job as the console shows it.

    With several tool calls, `tool` names them all, `input` is keyed by call, `output` joins theirs; `calls` tells them
    apart.
    """

    step: int
    method: Literal["code", "standard"] = Field(
        default="standard", description="`code`: a program called the tools, and `calls` holds its calls, too."
    )
    thought: str = ""
    tool: str | None = None
    input: Any = None
    output: str | None = None
    duration_ms: float | None = None
    status: Literal["running", "success", "failed", "skipped"]
    calls: tuple[StepCall, ...] = ()
    observation: str = Field(default="", description="What its calls came to, in one line.")


class StepList(Frozen):
    """A job's steps, in order."""

    job_id: str
    steps: tuple[Step, ...]


class JobCounts(Frozen):
    """How many jobs of a filter there are, in all and by what they are of."""

    jobs: int
    counted_max: int = Field(description="At most so many of the newest are counted: there may be more.")
    counted_since: datetime | None = Field(
        default=None, description="Set where older jobs were not looked at: there may be more of them."
    )
    status: dict[str, int] = Field(default_factory=dict)
    agent: dict[str, int] = Field(default_factory=dict)
    model: dict[str, int] = Field(default_factory=dict, description="By `provider/model`.")


class JobPage(Frozen):
    """Some of a tenant's jobs, in the order that was asked for; `next_cursor` asks for more."""

    jobs: tuple[JobView, ...]
    next_cursor: str | None = None
    facets: JobCounts | None = Field(default=None, description="Where they were asked for.")


class GetTrace(Request, subject="traces.get.{tenant}", replies=Trace):
    """Ask for a trace by its own id or by its job."""

    trace_id: str | None = None
    job_id: str | None = None
    user_id: str | None = Field(
        default=None,
        max_length=200,
        description="Whose key asks: without spans of programs whose traces join jobs of others, too.",
    )
    spans_max: int | None = Field(default=None, ge=1, description="Of its spans the first; none: all that are read.")


class GetSteps(Request, subject="traces.steps.{tenant}", replies=StepList):
    """Ask for a job's steps."""

    job_id: str


class ListJobs(Request, subject="jobs.list.{tenant}", replies=JobPage):
    """Page through those of a tenant's jobs that meet every condition."""

    limit: int = Field(default=50, ge=1, le=200)
    cursor: str | None = None
    status: Status | None = None
    agent: str | None = None
    agent_version: int | None = Field(default=None, description="Only of this version of their agent.")
    agent_label: str | None = Field(default=None, description="Only those whose version was chosen by this label.")
    fingerprint: str | None = Field(default=None, description="Only jobs that failed of this cause.")
    schedule: str | None = Field(default=None, description="Only jobs that this schedule submitted.")
    session_id: str | None = Field(default=None, description="Only jobs of this session.")
    user_id: str | None = Field(default=None, description="Only jobs of this user.")
    job_ids: tuple[JobId, ...] | None = Field(default=None, max_length=200, description="Only these.")
    cites: str | None = Field(
        default=None, max_length=200, description="Only jobs whose answer rests on passages of this document."
    )
    cites_chunk: str | None = Field(default=None, max_length=200, description="And on this one of its passages.")
    waiting_for: tuple[str, ...] | None = Field(
        default=None, max_length=10, description="Only parked jobs that wait for one of these."
    )
    statuses: tuple[Status, ...] = Field(default=(), max_length=10, description="Only in one of these states.")
    agents: tuple[str, ...] = Field(default=(), max_length=50, description="Only of one of these agents.")
    q: str | None = Field(default=None, max_length=QUERY_MAX, description="Only with all of these words.")
    model: str | None = Field(default=None, max_length=200, description="A model, or `provider/model`.")
    tier: str | None = Field(default=None, max_length=64)
    lane: Lane | None = None
    error_code: str | None = Field(default=None, max_length=64)
    tool: str | None = Field(default=None, max_length=128, description="Only jobs that called this tool.")
    tags: tuple[str, ...] = Field(default=(), max_length=TAGS_MAX, description="Only with all of these.")
    parent: str | None = Field(
        default=None, max_length=200, description="Only what this job started; `none`: only what no job started."
    )
    origin: str | None = Field(default=None, max_length=200, description="Only what branched off this job.")
    decided_since: datetime | None = Field(
        default=None, description="Only jobs on whose calls people decided then or later."
    )
    since: datetime | None = Field(default=None, description="Only accepted then or later.")
    until: datetime | None = Field(default=None, description="Only accepted before.")
    cost_min: Decimal | None = Field(default=None, ge=0, description="USD. A job of unknown cost is in no range.")
    cost_max: Decimal | None = Field(default=None, ge=0)
    seconds_min: float | None = Field(default=None, ge=0, description="From acceptance to the end, or until now.")
    seconds_max: float | None = Field(default=None, ge=0)
    feedback: FeedbackIs | None = Field(default=None, description="Judged well, badly, not at all, or in any way.")
    score_min: float | None = Field(default=None, ge=0, le=1, description="The mean score of its feedback.")
    score_max: float | None = Field(default=None, ge=0, le=1)
    sort: JobOrder = Field(default="newest", description="`slowest`: only jobs that have ended.")
    facets: bool = Field(default=False, description="Count them, too.")
    whole_answers: bool = Field(default=False, description="Not only their beginnings.")


class QueuePlaces(Frozen):
    """Places of jobs; one that has begun, or is not known yet, is not among them."""

    places: tuple[QueuePlace, ...]


class FindQueuePlaces(Request, subject="jobs.queued.{tenant}", replies=QueuePlaces):
    """Ask where jobs stand that no executor has begun."""

    job_ids: tuple[JobId, ...] = Field(min_length=1, max_length=200)


class CostRow(Frozen):
    """The cost of one group."""

    group: dict[str, str]
    calls: int
    calls_unknown: int = Field(description="Calls whose price nobody knows: in no sum.")
    usage: Usage
    cost_usd: Usd
    cache_read_share: float | None = Field(
        default=None, description="Input tokens that came from a prompt cache; None: there were none."
    )
    saved_usd: Usd = Field(default=Decimal(0), description="What prompt caches saved, over calls where they did.")
    lost_usd: Usd = Field(default=Decimal(0), description="What writing to them cost in vain, over the others.")
    calls_unsettled: int = Field(default=0, description="Calls whose usage never arrived: in no sum but the next two.")
    unsettled_lower_usd: Usd = Decimal(0)
    unsettled_upper_usd: Usd | None = Field(default=Decimal(0), description="None: a price is unknown.")
    predicted_usd: Usd | None = Field(
        default=None,
        description="What was predicted of the jobs whose first call is in this group, each job once. None: of "
        "none of them anything was.",
    )


class CostTable(Frozen):
    """What was spent, group by group, the dearest first."""

    rows: tuple[CostRow, ...]
    total: CostRow | None = Field(
        default=None, description="All groups together, also those that are not in `rows`; None: nothing was spent."
    )
    groups: int = Field(default=0, description="How many groups there are: more than `rows` where these were cut.")
    filtered_by: tuple[str, ...] = Field(
        default=(), description="Of the conditions `tags`, `agent_version` and `agent_label` those that were met."
    )


CostGroup = Literal[
    "model",
    "agent",
    "day",
    "tool",
    "user",
    "tenant",
    "session",
    "job",
    "kind",
    "hour",
    "provider",
    "purpose",
    "tier",
    "schedule",
    "cache_break",
    "key",
    "version",
    "label",
    "tag",
]
"""`kind`: a call of the conversation's model, of a tool, or an auxiliary one, whose `purpose` says what it was for.
`cache_break`: why a prompt did not continue the one before it. `key`: the id of the API key that asked for the job.
`tag`: a job of several tags counts in the group of each, and in the total once."""


class Spending(Frozen):
    """A paid call outside of any job, as the ledger has it."""

    attempt_id: str = Field(min_length=1, max_length=300, description="Sent to the provider with the call.")
    purpose: Purpose | Literal["tool"] = Field(description="`tool`: of a tool that was called outside of any job.")
    provider: str
    model: str = Field(description="Of a tool, its name.")
    input_tokens: int = Field(default=0, ge=0, le=TOKENS_MAX)
    cost_usd: Usd | None = Field(default=None, description="None: unknown.")
    unsettled: Bounds | None = Field(default=None, description="Between what it can have cost; None: it is settled.")
    at: datetime


SPENDINGS_MAX = 500


class Recorded(Frozen):
    """How many entries were taken."""

    entries: int


class RecordSpending(Request, subject="costs.record.{tenant}", replies=Recorded):
    """Put calls outside of any job into the ledger; again, it settles what was unsettled and changes nothing else."""

    entries: tuple[Spending, ...] = Field(max_length=SPENDINGS_MAX)


class GetCosts(Request, subject="costs.get.{tenant}", replies=CostTable):
    """Ask what a tenant spent, in groups."""

    group_by: tuple[CostGroup, ...] = ("model",)
    since: datetime | None = None
    until: datetime | None = Field(default=None, description="Only what was spent before.")
    agent: str | None = None
    model: str | None = Field(default=None, description="A model, or `provider/model`.")
    tool: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    job_id: str | None = None
    tags: tuple[str, ...] = Field(default=(), max_length=TAGS_MAX, description="Only of jobs that have all of them.")
    agent_version: int | None = Field(default=None, description="Only of jobs of this version of their agent.")
    agent_label: str | None = Field(default=None, description="Only of jobs whose version was chosen by this label.")
    tz: str = Field(default="UTC", description="Whose days are meant: an IANA name.")

    @property
    def newer_conditions(self) -> tuple[str, ...]:
        """Return which conditions it has that a tracing of before 0.2.0 passes over."""
        return tuple(name for name in ("tags", "agent_version", "agent_label") if getattr(self, name) not in (None, ()))


class GetSessionCosts(Request, subject="costs.session.{tenant}", replies=CostTable):
    """Ask what the jobs of a session spent together: `total`, and no rows. Jobs that these started are not counted."""

    session_id: str = Field(max_length=SESSION_ID_MAX)
    since: datetime | None = Field(default=None, description="When it began: before, its id was another session's.")


class Spans(Message, subject="telemetry.traces"):
    """A batch of finished spans: an OTLP `ExportTraceServiceRequest` in protobuf, not JSON."""
