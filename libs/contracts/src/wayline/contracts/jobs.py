"""A job from the outside: how it is asked for, steered, and seen."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from wayline.contracts.agents import Instructions
from wayline.contracts.base import Frozen, Message, Request, Usd
from wayline.contracts.chat import Citation, Part, TextPart
from wayline.contracts.ids import JobId, Name, NewJobId, new_id
from wayline.contracts.models import Slot, Tier
from wayline.contracts.money import Dollars, JobCosts, Usage

SECONDS_MAX = 14 * 86_400
"""A job ends within 14 days: the log keeps its records for 30, so no live log loses its head."""

Lane = Literal["interactive", "batch"]
WhenBusy = Literal["wait", "refuse", "interrupt", "steer"]
TURN = "turn"
"""The `wait_id` of a job that waits for its turn in its session."""


class Status(StrEnum):
    """How far a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    PARKED = "parked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


class JobOptions(Frozen):
    """What one job may ask for beyond its agent's configuration; an unknown option is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = Field(default=None, description="`provider/model`, instead of the router's choice.")
    task_type: str | None = Field(default=None, max_length=64)
    style: str | None = Field(
        default=None, max_length=200, description="How to answer; said to the model beside the input."
    )
    max_steps: int | None = Field(default=None, ge=1, le=1_000)
    max_output_tokens: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0, le=SECONDS_MAX)
    budget_usd: Dollars | None = Field(
        default=None, description="What the job may spend; else what a budget for each job says, else the default."
    )
    at_cap: Literal["partial", "park"] = "partial"
    required_tools: tuple[str, ...] = Field(
        default=(),
        description="Refuse the job when one of these is missing; an answer before all of them ran is sent back once.",
    )
    lane: Lane = "interactive"
    when_busy: WhenBusy = Field(
        default="wait",
        description="What to do while an earlier job of the session has not ended: wait for its end, be refused "
        "(`session_busy`), cancel it and go on, or hand the input to it and end.",
    )
    dry_run: bool = Field(default=False, description="Decide the route and its predicted cost; run nothing.")


INPUT_SHOWN_MAX = 200
"""Characters of a job's input that lists and details show; its log has the whole."""


class ForkedResult(Frozen):
    """What a tool shall have returned."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str
    failed: bool = False


class Fork(Frozen):
    """Where a job branches off another one, and what is different from there on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job_id: JobId = Field(description="The job that it branches off.")
    after: int | None = Field(
        default=None, ge=1, description="The last event that they share; None: before the step that failed."
    )
    prompt: Instructions | None = Field(default=None, description="Another system prompt.")
    arguments: dict[str, dict[str, Any]] | None = Field(
        default=None, description="Other arguments of calls of the `model.completed` at `after`, by call."
    )
    tool_result: ForkedResult | None = Field(
        default=None, description="In the place of the result of the `tool.completed` at `after`."
    )


class Origin(Frozen):
    """What a fork shares with the job that it branched off."""

    job_id: str
    seq: int = Field(description="The last event that they share.")
    hash: str = Field(description="Of that job's events up to there.")


class SubmitJob(Message, subject="jobs.submit.{tenant}"):
    """Ask for a job: `{"agent": "assistant", "input": "…"}` is enough."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    terse = True
    from_clients = True
    body_max = 112 * 1024

    agent: str = Field(min_length=1, max_length=64)
    input: str | tuple[Part, ...] = Field(description="Text, or parts: text, image, file by document id.")
    job_id: NewJobId | None = Field(default=None, description="The client's own id; the same id is the same job.")
    session_id: str | None = Field(default=None, max_length=128)
    user_id: str | None = Field(default=None, max_length=128)
    options: JobOptions = JobOptions()
    fork: Fork | None = Field(
        default=None,
        description="It branches off another job: same agent, and the same input unless nothing is shared.",
    )

    def content_hash(self) -> str:
        """Hash what makes two submissions the same job: everything but the id."""
        # An option that is younger than stored hashes counts only where it is set.
        younger = {"when_busy"} if self.options.when_busy == "wait" else set[str]()
        beside = {"job_id": True, "options": younger} | ({"fork": True} if self.fork is None else {})
        content = self.model_dump_json(exclude=beside)
        return sha256(content.encode()).hexdigest()[:32]

    def parts(self) -> tuple[Part, ...]:
        """Return the input as parts, whichever way it was written."""
        return (TextPart(text=self.input),) if isinstance(self.input, str) else self.input

    def beginning(self) -> str:
        """Return the beginning of the input on one line; an image or a file stands as its kind and its document."""
        shown = self.parts()[:INPUT_SHOWN_MAX]
        # No more than can be shown is read: an input may have a million characters of white space.
        texts = (
            part.text[: 4 * INPUT_SHOWN_MAX] if isinstance(part, TextPart) else f"[{part.type} {part.document_id}]"
            for part in shown
        )
        line = " ".join(" ".join(texts).split())
        return line if len(line) <= INPUT_SHOWN_MAX else f"{line[: INPUT_SHOWN_MAX - 1]}…"


class Turn(Frozen):
    """A job's place in its session: they run one at a time, in this order."""

    number: int = Field(ge=1)
    after: str | None = Field(default=None, description="The job before it, whatever became of that; None: the first.")


class FiredBy(Frozen):
    """The schedule that a job was submitted by, and the moment that it was submitted for."""

    schedule: str
    version: int
    due_at: datetime
    missed: int = Field(default=0, description="Earlier moments that passed without a job.")


class Parent(Frozen):
    """The call of `run_agent` by which a job was started."""

    job_id: str
    step: int
    call: str
    depth: int = Field(ge=1, description="How many jobs are above: 1 for what a client's own job started.")
    tainted_by: str | None = Field(
        default=None, description="The untrusted tool whose words the task may hold, because the parent had read them."
    )


class Child(Frozen):
    """A job that another one started."""

    job_id: str
    agent: str
    step: int
    call: str
    status: Status | None = Field(default=None, description="How it ended, once its parent has read that.")
    cost_usd: Usd | None = Field(
        default=Decimal(0), description="With what it started itself; null: a price is unknown, or it went on alone."
    )


class Carried(Frozen):
    """A record of a job's log as it stands there."""

    said: str = Field(description="Its header, for instance `state=new seq=2 …`.")
    body: str


def backlog_of(lane: str) -> str:
    """Return the name of a lane's backlog, as its tickets and their consumer have it."""
    return f"{lane}_backlog"


class RunJob(Message, subject="jobs.run.{lane}.{tenant}"):
    """A run ticket: the job may go on from the record at stream sequence `at`."""

    lane: str = Field(default="interactive", exclude=True)
    job: str
    at: int
    record: Carried | None = Field(
        default=None, description="The record at `at`, where it is small: whoever claims the job need not read it."
    )

    @property
    def msg_id(self) -> str:
        """Return the id of the ticket: the same for everyone who queues the job from the same record."""
        return f"{self.tenant}/{self.job}:{self.at}"


class Cancel(Frozen):
    """The job shall stop."""

    type: Literal["cancel"] = "cancel"
    reason: str = ""
    by: str = ""


class Answer(Frozen):
    """A human's word on a tool call whose outcome is unknown."""

    type: Literal["answer"] = "answer"
    decision_id: str
    outcome: Literal["succeeded", "failed", "retry"]
    content: str = Field(default="", description="What the tool would have returned, where it succeeded.")
    by: str = ""


class RaiseBudget(Frozen):
    """The job may spend more."""

    type: Literal["budget"] = "budget"
    budget_usd: Dollars | None = Field(
        default=None, description="Its own budget from now on; None: as it is, but one it shares has room again."
    )
    by: str = ""


class Expire(Frozen):
    """The time for a wait is over."""

    type: Literal["expire"] = "expire"
    wait_id: str


class Steer(Frozen):
    """A later job of the session has words for this one; they stand in that job's log, and nowhere else."""

    type: Literal["steer"] = "steer"
    by: JobId = Field(description="The later job.")


Signalled = Annotated[Cancel | Answer | RaiseBudget | Expire | Steer, Field(discriminator="type")]


class Signal(Message, subject="signals.{tenant}.{job_id}"):
    """Something a running or parked job should know."""

    from_clients = True
    body_max = 8 * 1024

    job_id: str = Field(default="", exclude=True)
    signal: Signalled

    @property
    def msg_id(self) -> str:
        """Return a random id: one that could be guessed could be spent by another sender first."""
        return new_id("signal")


class DecideApproval(Message, subject="approvals.{tenant}.{job_id}"):
    """Approve or deny a tool call that waits. On a subject of its own: who may signal may not approve by that."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    from_clients = True
    body_max = 8 * 1024

    job_id: str = Field(default="", exclude=True)
    approval_id: str
    decision: Literal["approve", "deny"]
    arguments: dict[str, Any] | None = Field(
        default=None,
        description="What the tool is called with instead of what was asked for, or the answer to what its server "
        "asks; checked again.",
    )
    reason: str = Field(default="", description="What the model is told where the call is denied.")
    by: str = ""

    @property
    def msg_id(self) -> str:
        """Return a random id: one that could be guessed could be spent by another sender first."""
        return new_id("approval")


class WakeLater(Message, subject="later.{tenant}.{job_id}.{wait_id}"):
    """A schedule: at its time the server itself publishes `Due`. One subject a wait, so that repeats are harmless."""

    job_id: str = Field(default="", exclude=True)
    wait_id: str = Field(default="", exclude=True)


class Due(Message, subject="due.{tenant}.{job_id}.{wait_id}"):
    """A scheduled signal whose time has come."""

    job_id: str = Field(default="", exclude=True)
    wait_id: str = Field(default="", exclude=True)


class Delta(Message, subject="deltas.{tenant}.{job_id}"):
    """A piece of text as a model produces it; not stored, carries no id."""

    job_id: str = Field(default="", exclude=True)
    step: int
    attempt: int
    text: str


class Complexity(Frozen):
    """How hard a job looks, from its input alone."""

    score: float = Field(ge=0, le=1, description="How hard beside other texts; a longer one is harder.")
    content: float | None = Field(
        default=None, ge=0, le=1, description="How demanding its words are, whatever their number."
    )
    level: Literal["simple", "moderate", "complex"]
    needs_reasoning: bool = False


class Route(Frozen):
    """Which model takes a job, and why in one sentence."""

    provider: str
    model: str
    tier: Tier
    reason: str
    slot: Slot = "primary"
    task_type: str | None = None
    classifier: str | None = Field(
        default=None,
        description="The `provider/model` that is asked for the type of task before the first call; the route may "
        "change with its answer.",
    )
    complexity: Complexity | None = None
    estimated_cost_usd: Usd | None = Field(default=None, description="Expected; None: the price is unknown.")
    estimated_cost_range_usd: tuple[Usd, Usd] | None = Field(
        default=None, description="The least and the most it may cost."
    )

    @property
    def name(self) -> str:
        """Return `provider/model`."""
        return f"{self.provider}/{self.model}"


class Failure(Frozen):
    """Why a job or a call did not succeed."""

    code: str
    message: str


class Planned(Frozen):
    """What would become of a job: nothing ran."""

    agent: str
    agent_version: int
    route: Route
    refusal: Failure | None = Field(
        default=None, description="Why the job would be refused before anything is spent; None: it would run."
    )


class PlanJob(Request, subject="jobs.plan.{tenant}", replies=Planned):
    """Decide a job's route and its predicted cost without running it."""

    terse = True

    job: SubmitJob


ApprovalCause = Literal["tool", "agent", "tainted"]
"""Who asks for it: the tool's own definition, the agent's policy, or untrusted content that the job has read."""


class PendingApproval(Frozen):
    """A tool call that waits for a person's approval."""

    approval_id: str
    call: str
    tool: str
    arguments: dict[str, Any]
    why: ApprovalCause
    reason: str = ""
    expires_at: datetime
    input_schema: dict[str, Any] | None = Field(
        default=None,
        description="Of the answer that the tool's server wants from a person, who is asked `reason`; None: whether "
        "the call may be made.",
    )


class Waiting(Frozen):
    """What a parked job waits for."""

    why: Literal["needs_decision", "budget", "turn", "approval", "children"]
    wait_id: str
    after: str | None = Field(
        default=None, description="The job of its session before it, where it waits for its turn."
    )
    into: str | None = Field(
        default=None, description="The running job that shall take its words, where it waits only until that is known."
    )
    question: str = ""
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    expires_at: datetime | None = None
    approvals: tuple[PendingApproval, ...] = Field(
        default=(), description="Every call of the step that waits for an approval, each with its id."
    )
    children: tuple[str, ...] = Field(
        default=(), description="The jobs that it started and that had not ended; it goes on when all of them have."
    )


class JobView(Frozen):
    """A job as HTTP, the reply subject and the command line show it."""

    job_id: str
    status: Status
    agent: str
    agent_version: int | None = None
    session_id: str | None = None
    user_id: str | None = None
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
        description="With what the jobs cost that it started; null: a price is unknown, or this is a list.",
    )
    answer: str | None = None
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
    links: dict[str, str] = Field(default_factory=dict)


REPLY_TO_MAX = 255
"""Characters of a reply subject."""
_LITERAL = re.compile(r"[!-)+,/-=?-~-]+(\.[!-)+,/-=?-~-]+)+")
"""A subject of printable ASCII without white space, wildcards or empty parts."""


def may_reply_to(tenant: str, subject: str) -> bool:
    """Return whether a result may be sent there: to an inbox or to the tenant's own replies, in plain characters."""
    literal = len(subject) <= REPLY_TO_MAX and _LITERAL.fullmatch(subject) is not None
    return literal and subject.startswith(("_INBOX.", f"replies.{tenant}."))


class JobResult(Message, subject="replies.{tenant}.{job_id}"):
    """The end of a job, sent to its `Wayline-Reply-To` at least once."""

    job_id: str = Field(default="", exclude=True)
    job: JobView


PARENT_CANCELLED = "the job that started it was cancelled"
PARENT_LATE = "the job that started it has no time left"


class ChildState(Frozen):
    """A job that another one started, as far as it is."""

    job_id: str
    ended: bool


class StartChild(Request, subject="jobs.start.{tenant}", replies=ChildState):
    """Start the job of a call of `run_agent`; asking again starts nothing more.

    With `stop`, end it instead: it is cancelled, and one that was not started yet never will be.
    """

    terse = True

    parent: Parent
    agent: Name
    input: str
    user_id: str | None = None
    lane: Lane = "interactive"
    max_seconds: float = Field(gt=0, description="What is left of its parent's time.")
    stop: str | None = Field(default=None, description="Why it shall end.")
