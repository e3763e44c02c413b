"""Facts: the closed vocabulary of a job's log.

Every event says which job and where in its log (`seq`, 1..n without gaps), when, and on which span it stands.
Add a type when something true is missing; never give one a second meaning.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field

from wayline.contracts.agents import AgentConfig
from wayline.contracts.base import Frozen
from wayline.contracts.chat import AssistantMessage, Attachment, Citation, NoteMessage
from wayline.contracts.jobs import Failure, Route, SubmitJob, Waiting
from wayline.contracts.models import ModelCard, Slot
from wayline.contracts.money import Usage
from wayline.contracts.tools import Effect, ToolDefinition, ToolError


class SpanRef(Frozen):
    """The span that an event belongs to; its id is derived, so a redelivered step lands on the same span."""

    trace_id: str
    span_id: str


class Event(Frozen):
    job_id: str
    seq: int = Field(ge=1, description="Place in the job's log, from 1 without gaps; the SSE id.")
    at: datetime
    trace: SpanRef
    type: str


class JobSubmitted(Event):
    type: Literal["job.submitted"] = "job.submitted"
    tenant: str
    job: SubmitJob
    content_hash: str
    reply_to: str | None = None
    caller: str | None = Field(default=None, description="The caller's `traceparent`: a link, never our parent.")


class Limits(Frozen):
    """What bounds a job, fixed when it was routed."""

    max_steps: int
    max_seconds: float
    max_output_tokens: int
    budget_usd: Decimal | None = None


class Candidates(Frozen):
    """Every model a job may use, pinned with its prices when the job was routed."""

    cards: tuple[ModelCard, ...] = ()
    slots: dict[Slot, str] = Field(default_factory=dict, description="`provider/model` of each slot that has one.")
    fallbacks: tuple[str, ...] = ()
    tasks: dict[str, Route | None] = Field(
        default_factory=dict,
        description="The types of task that the route's classifier may name, and the route of each; None: it stays. "
        "Empty: nobody is asked.",
    )

    def card(self, name: str) -> ModelCard | None:
        """The card of a `provider/model`."""
        return self._by_name.get(name)

    def __copy__(self) -> Self:
        # A copy may be given other cards: it looks them up anew.
        copied = super().__copy__()
        vars(copied).pop("_by_name", None)
        return copied

    @cached_property
    def _by_name(self) -> dict[str, ModelCard]:
        return {card.name: card for card in reversed(self.cards)}


class Warm(Frozen):
    """What the last job of a session left in a provider's cache."""

    model: str = Field(description="`provider/model`")
    prefix_tokens: int = Field(ge=0)


class Away(Frozen):
    """A model that was passed over for a slot, because it could not be called at that moment."""

    slot: Slot
    model: str = Field(description="`provider/model`")
    why: str = Field(description="A clause about the model: `keeps failing`.")


class JobRouted(Event):
    type: Literal["job.routed"] = "job.routed"
    agent: str
    agent_version: int
    config: AgentConfig
    route: Route
    limits: Limits
    candidates: Candidates = Candidates()
    policy: str = Field(default="", description="The policy that decided, by name and version.")
    left_usd: Decimal | None = Field(default=None, description="What the budgets left for the job; None: no budget.")
    held_usd: Decimal | None = Field(default=None, description="What was held for the job at once; None: no budget.")
    warm: Warm | None = None
    attachments: tuple[Attachment, ...] = Field(
        default=(), description="The documents that its messages and its agent name, by the bytes they had then."
    )
    away: tuple[Away, ...] = Field(default=(), description="Models that could not be called then, by slot.")


class JobRerouted(Event):
    """Another model goes on with the job, from the next call on."""

    type: Literal["job.rerouted"] = "job.rerouted"
    route: Route
    cause: Literal["escalation", "fallback", "budget", "classification"]


class JobClaimed(Event):
    type: Literal["job.claimed"] = "job.claimed"
    executor: str
    epoch: int = Field(description="How often the job was claimed, this claim included.")
    owner: str = Field(description="`<ticket stream sequence>:<delivery>` of the run ticket.")
    attempt: int = Field(description="Claims in a row without progress, this one included.")


class JobHandedBack(Event):
    """Its holder gave it back alive, for instance to be stopped: a claim that ends so is none without progress."""

    type: Literal["job.handed_back"] = "job.handed_back"
    reason: str = ""


class Segment(Frozen):
    """A part of a prompt by its hash: what two calls have in common is what a provider's cache can keep.

    All messages are one segment, so that a log stays linear in what was said: with the count of the call before, the
    next call can tell whether its own first so many messages are still those.
    """

    part: Literal["tools", "system", "messages"]
    hash: str
    count: int = Field(default=1, description="How many tools or messages it covers.")
    tokens: int = Field(default=0, description="Estimated.")


CacheBreak = Literal["model_changed", "tools_changed", "system_changed", "compaction", "history_edited", "expired"]
"""Why a provider's cache cannot continue the call before."""


class ModelRequested(Event):
    type: Literal["model.requested"] = "model.requested"
    step: int
    attempt: int
    attempt_id: str
    provider: str
    model: str
    tools: tuple[ToolDefinition, ...] | None = Field(
        default=None, description="The tools offered; None: the same as in the request before."
    )
    prefix: tuple[Segment, ...] = Field(default=(), description="What the prompt is made of, in order.")
    cache_break: CacheBreak | None = Field(
        default=None, description="Why the prompt does not continue the one before; None: it does, or it is the first."
    )
    worst_usd: Decimal | None = Field(default=None, description="The most this call can cost; None: price unknown.")
    held_usd: Decimal | None = Field(
        default=None, description="What is held for the job from this call on; None: the same as before."
    )


class Bounds(Frozen):
    """Between what a call can have cost whose usage never arrived; None: its price is unknown."""

    lower_usd: Decimal | None
    upper_usd: Decimal | None


class ModelCompleted(Event):
    type: Literal["model.completed"] = "model.completed"
    step: int
    attempt: int
    attempt_id: str
    message: AssistantMessage
    usage: Usage
    cost_usd: Decimal | None
    stop_reason: str
    duration_ms: float
    first_token_ms: float | None = None
    saved_usd: Decimal | None = Field(default=None, description="What the provider's cache saved; below 0: it cost.")
    notes: tuple[str, ...] = Field(default=(), description="What was not sent as configured, and why.")
    unsettled: Bounds | None = Field(
        default=None, description="Set where the provider told no usage: there is no cost then, and `usage` is empty."
    )


LOST = "lost"
"""The error code of a model call that nobody saw end: its holder was killed."""


class ModelFailed(Event):
    """A call without a message. What it had streamed is void: whoever showed it takes it back."""

    type: Literal["model.failed"] = "model.failed"
    step: int
    attempt: int
    attempt_id: str
    error: Failure
    retryable: bool
    usage: Usage | None = Field(default=None, description="None: the provider's final count never arrived.")
    cost_usd: Decimal | None = None
    unsettled: Bounds | None = Field(default=None, description="Set where the provider may have billed it.")
    retracted_chars: int = Field(default=0, description="Streamed characters that are void.")
    after_s: float | None = Field(default=None, description="When the provider said to come back.")
    duration_ms: float = 0


Purpose = Literal["classification", "compaction", "title", "embedding", "rerank", "image"]
"""What an auxiliary call is for."""


class AuxiliaryRequested(Event):
    """A priced call beside the conversation is about to be made: nobody makes it again, whatever becomes of it."""

    type: Literal["aux.requested"] = "aux.requested"
    purpose: Purpose
    attempt_id: str = Field(description="Unique in the job, and sent to the provider as a header.")
    provider: str
    model: str
    worst_usd: Decimal | None = Field(default=None, description="The most this call can cost; None: price unknown.")
    held_usd: Decimal | None = Field(
        default=None, description="What is held for the job from this call on; None: the same as before."
    )


class AuxiliaryFailed(Event):
    """An auxiliary call without an answer: the job goes on without it."""

    type: Literal["aux.failed"] = "aux.failed"
    purpose: Purpose
    attempt_id: str
    error: Failure
    usage: Usage | None = Field(default=None, description="None: the provider's final count never arrived.")
    cost_usd: Decimal | None = None
    unsettled: Bounds | None = Field(default=None, description="Set where the provider may have billed it.")
    duration_ms: float = 0


class AuxiliaryCompleted(Event):
    """A priced call beside the conversation: no message of it is part of a prompt."""

    type: Literal["aux.completed"] = "aux.completed"
    purpose: Purpose
    attempt_id: str = Field(description="Unique in the job, and sent to the provider as a header.")
    provider: str
    model: str
    usage: Usage = Usage()
    cost_usd: Decimal | None
    unsettled: Bounds | None = Field(
        default=None, description="Set where the provider told no usage: there is no cost then, and `usage` is empty."
    )
    duration_ms: float = 0


class TaskClassified(Event):
    """What came of asking which type of task a job is."""

    type: Literal["task.classified"] = "task.classified"
    task_type: str | None = Field(description="None: it stays unknown, and the route as it is.")
    reason: str = Field(default="", description="Why it stays unknown.")


class ContextInjected(Event):
    """The platform told the model something; it stays where it was said."""

    type: Literal["context.injected"] = "context.injected"
    note: NoteMessage


class ContextCompacted(Event):
    """A summary took the place of all messages between the first one and the last few."""

    type: Literal["context.compacted"] = "context.compacted"
    note: NoteMessage
    kept: int = Field(ge=0, description="Messages at the end that stay as they are.")


class ToolsDiscovered(Event):
    """Tools that the model was told of after its first call: it reaches them through `use_tool`."""

    type: Literal["tools.discovered"] = "tools.discovered"
    tools: tuple[ToolDefinition, ...]


class ToolRequested(Event):
    type: Literal["tool.requested"] = "tool.requested"
    step: int
    call: str
    tool: str
    arguments: dict[str, Any]
    effect: Effect
    key: str


class ToolCompleted(Event):
    type: Literal["tool.completed"] = "tool.completed"
    step: int
    call: str
    tool: str
    status: Literal["success", "failed", "skipped"]
    content: str = Field(default="", description="What the model is shown.")
    full: str | None = Field(default=None, description="The whole result, where the model was shown a shorter form.")
    citations: tuple[Citation, ...] = ()
    error: ToolError | None = None
    duration_ms: float = 0
    size_bytes: int = 0
    tokens: int = 0
    cost_usd: Decimal | None = None


class ToolUnknown(Event):
    """Nobody knows whether a `once` tool acted: its ledger row began, its holder died, and a human must decide."""

    type: Literal["tool.unknown"] = "tool.unknown"
    step: int
    call: str
    tool: str
    key: str
    decision_id: str
    expires_at: datetime


class DecisionMade(Event):
    """Somebody answered what a parked job waited for, or (`expired`) nobody did in time."""

    type: Literal["decision.made"] = "decision.made"
    decision_id: str
    outcome: Literal["succeeded", "failed", "retry", "expired"]
    content: str = ""
    by: str = ""


class JobParked(Event):
    type: Literal["job.parked"] = "job.parked"
    waiting: Waiting
    signals_seen: int
    kept_usd: Decimal | None = Field(
        default=None, description="What stays held for it: no more than it can have cost; None: nothing was held."
    )


class JobResumed(Event):
    type: Literal["job.resumed"] = "job.resumed"


class CancelRequested(Event):
    type: Literal["job.cancel_requested"] = "job.cancel_requested"
    reason: str = ""
    by: str = ""


class BudgetRaised(Event):
    type: Literal["budget.raised"] = "budget.raised"
    budget_usd: Decimal
    by: str = ""


class Ended(Event):
    """What every terminal event carries: the sums of the whole job."""

    steps: int = 0
    usage: Usage = Usage()
    cost_usd: Decimal | None = Decimal(0)


class JobCompleted(Ended):
    type: Literal["job.completed"] = "job.completed"
    answer: str
    citations: tuple[Citation, ...] = ()
    partial: bool = Field(default=False, description="A limit was reached: the answer is what there was until then.")
    reason: str | None = Field(
        default=None, description="Which limit, where the answer is partial; or why it is not all that was asked for."
    )


class JobFailed(Ended):
    type: Literal["job.failed"] = "job.failed"
    error: Failure


class JobCancelled(Ended):
    type: Literal["job.cancelled"] = "job.cancelled"
    reason: str = ""
    by: str = ""


AnyEvent = Annotated[
    JobSubmitted
    | JobRouted
    | JobRerouted
    | JobClaimed
    | JobHandedBack
    | ModelRequested
    | ModelCompleted
    | ModelFailed
    | AuxiliaryRequested
    | AuxiliaryCompleted
    | AuxiliaryFailed
    | TaskClassified
    | ContextInjected
    | ContextCompacted
    | ToolsDiscovered
    | ToolRequested
    | ToolCompleted
    | ToolUnknown
    | DecisionMade
    | JobParked
    | JobResumed
    | CancelRequested
    | BudgetRaised
    | JobCompleted
    | JobFailed
    | JobCancelled,
    Field(discriminator="type"),
]

EVENT_TYPES: dict[str, type[Event]] = {
    member.model_fields["type"].default: member for member in get_args(get_args(AnyEvent)[0])
}
TERMINAL_TYPES = frozenset({"job.completed", "job.failed", "job.cancelled"})


class Unknown(Event):
    """An event type that this build does not know: a reader passes over it, an executor does not claim its job."""


def read_event(value: dict[str, Any]) -> Event:
    """One event from its decoded JSON, without the fields that only a newer build knows; an unknown type is `Unknown`.

    Raises pydantic's ValidationError.
    """
    return EVENT_TYPES.get(value.get("type", ""), Unknown).model_validate(value, extra="ignore")
