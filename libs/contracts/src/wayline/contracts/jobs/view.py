"""A job as it is shown, and its result as it is sent."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from pydantic import Field

from wayline.contracts.base import Frozen, Message, Usd
from wayline.contracts.chat import Citation
from wayline.contracts.feedback import FeedbackSummary
from wayline.contracts.jobs.children import Child, Parent
from wayline.contracts.jobs.routes import Route
from wayline.contracts.jobs.status import Failure, Status
from wayline.contracts.jobs.submission import FiredBy, Lane, Origin, SubmittedBy
from wayline.contracts.jobs.waiting import Decision, Waiting
from wayline.contracts.money import JobCosts, Usage
from wayline.contracts.progress import Progress
from wayline.contracts.tools import ToolProgress

ANSWER_SHOWN_MAX = 1_000
"""Characters of a job's answer in a list."""


class CallProgress(ToolProgress):
    """How far one tool call of a job is."""

    call: str
    tool: str


class Delta(Message, subject="deltas.{tenant}.{job_id}"):
    """What is not stored of a job under way: a piece of text as a model produces it, or how far a tool call is."""

    job_id: str = Field(default="", exclude=True)
    step: int
    attempt: int = Field(description="Of the model's call; 0: of none.")
    text: str
    offset: int | None = Field(
        default=None,
        description="Characters of the attempt's text before this piece: who has seen fewer came in its midst. Null: "
        "not of a model's text, or of a version before.",
    )
    tool: CallProgress | None = Field(default=None, description="Of a tool call; `text` is empty then.")


class QueuePlace(Frozen):
    """Where a job that no executor has begun stands among those of its tenant and lane."""

    job_id: str
    lane: Lane
    position: int = Field(
        ge=1,
        description="From 1: one more than the jobs of its tenant and lane that were accepted before it and have not "
        "begun either, as far as tracing knows. Jobs of other tenants are not counted.",
    )
    queued: int = Field(ge=1, description="All jobs of its tenant and lane that have not begun.")


class TaintSource(Frozen):
    """Where a job first read the words of strangers."""

    kind: Literal["tool", "document", "child", "parent", "session"] = Field(
        description="`tool`: in a result. `document`: in one that the job was given. `child`, `parent`, `session`: in "
        "the words of a job that it started, of the one that started it, or of the one before it in its session."
    )
    name: str = Field(description="The tool or the document that they came from, also where another job read it.")
    step: int | None = Field(default=None, description="Of the result; null: the job had them from its beginning.")
    call: str | None = Field(default=None, description="Of that step.")
    job_id: str | None = Field(default=None, description="The other job; null: there is none, or its history is lost.")


class JobView(Frozen):
    """A job as HTTP, the reply subject and the command line show it."""

    job_id: str
    status: Status
    agent: str
    agent_version: int | None = None
    agent_label: str | None = Field(
        default=None, description="By which that version was chosen; null: it was the newest, or its origin's."
    )
    session_id: str | None = None
    user_id: str | None = None
    tags: tuple[str, ...] = ()
    input: str | None = Field(
        default=None, description="The beginning of its input, on one line; null where nobody has it (yet)."
    )
    route: Route | None = None
    steps: int = 0
    usage: Usage = Usage()
    cost_usd: Usd | None = Field(default=Decimal(0), description="USD; null when a call's price is unknown.")
    costs: JobCosts | None = Field(default=None, description="What the cost is made of.")
    total_cost_usd: Usd | None = Field(
        default=None,
        description="With what the jobs cost that it started; null: a price is unknown.",
    )
    answer: str | None = None
    answer_cut: bool = Field(
        default=False,
        description="Only the beginning of the answer stands here, as in lists: get the job for all.",
    )
    partial: bool = Field(default=False, description="A limit was reached: the answer is what there was until then.")
    reason: str | None = Field(
        default=None,
        description="Which limit, where the answer is partial; why it is not all that was asked for; or why it was "
        "cancelled.",
    )
    citations: tuple[Citation, ...] = ()
    error: Failure | None = None
    waiting_for: Waiting | None = None
    created_at: datetime | None = None
    ended_at: datetime | None = None
    trace_id: str | None = None
    origin: Origin | None = Field(default=None, description="Where it branched off another job.")
    schedule: FiredBy | None = Field(default=None, description="The schedule that submitted it; None: none did.")
    handed_to: str | None = Field(
        default=None, description="The running job of its session that took its input; it did nothing itself."
    )
    parent: Parent | None = Field(default=None, description="The job that started it.")
    children: tuple[Child, ...] = Field(default=(), description="The jobs that it started, in that order.")
    fingerprint: str | None = Field(
        default=None, description="Of a failed job: the same for all that failed of one cause."
    )
    feedback: FeedbackSummary | None = Field(
        default=None, description="What was thought of it; null: nothing was said."
    )
    decisions: tuple[Decision, ...] = Field(
        default=(), description="What people decided on its tool calls, the newest last; of many the newest."
    )
    tainted_by: TaintSource | None = Field(
        default=None, description="Where it first read the words of strangers; null: it has read none."
    )
    submitted_by: SubmittedBy | None = Field(
        default=None, description="Who asked for it, as the gateway told it; null for jobs of versions before."
    )
    progress: Progress | None = Field(
        default=None,
        description="What it does right now, where it runs and is asked for by its id; null in lists, while it is "
        "queued or parked, and once it has ended.",
    )
    queue: QueuePlace | None = Field(
        default=None,
        description="Its place, where it is queued and is asked for by its id; null where tracing does not know it.",
    )
    links: dict[str, str] = Field(default_factory=dict)

    def in_list(self) -> JobView:
        """Return the job as lists show it: with no more than the beginning of its answer."""
        if self.answer is None or len(self.answer) <= ANSWER_SHOWN_MAX:
            return self
        return self.model_copy(update={"answer": self.answer[:ANSWER_SHOWN_MAX], "answer_cut": True})


class JobResult(Message, subject="replies.{tenant}.{job_id}"):
    """The end of a job, sent to its `Wayline-Reply-To` at least once."""

    job_id: str = Field(default="", exclude=True)
    job: JobView
