"""What a job is at some point of its log: parts by meaning, each folded by a table of its own."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.budgets import DENSITY_MAX
from wayline.contracts.chat import AssistantMessage, Attachment, ChatMessage
from wayline.contracts.jobs import (
    Child,
    Decision,
    Failure,
    FiredBy,
    Origin,
    Parent,
    Route,
    Status,
    SubmitJob,
    SubmittedBy,
    Turn,
    Waiting,
)
from wayline.contracts.models import ModelCard, Slot
from wayline.contracts.money import JobCosts, Usage
from wayline.contracts.working_context import KnownEntity, KnownMemory, WorkingContext
from wayline.journal.calls import Code, Tools
from wayline.journal.costs import plus

Changes = dict[str, Any]
"""The fields of one part that an event changes."""
DENSITY_MIN = 0.5
"""Between this and `DENSITY_MAX` a provider's count corrects an estimate: beyond them something else was counted."""


def density(counted_tokens: int, estimated_tokens: int) -> float | None:
    """Return how many tokens were counted for each estimated one; None: one of the two is missing."""
    if not counted_tokens or not estimated_tokens:
        return None
    return min(max(counted_tokens / estimated_tokens, DENSITY_MIN), DENSITY_MAX)


class Life(NamedTuple):
    """Who asked for the job, how far it is, what it waits for and how it ended."""

    status: Status = Status.QUEUED
    submitted: SubmitJob | None = None
    reply_to: str | None = None
    origin: Origin | None = None
    """Where it branched off another job."""
    schedule: FiredBy | None = None
    """The schedule that submitted it."""
    submitted_by: SubmittedBy | None = None
    created_at: datetime | None = None
    deadline: datetime | None = None
    """When its time is over; the time that it was parked is not its own."""
    epoch: int = 0
    cancel: e.CancelRequested | None = None
    waiting: Waiting | None = None
    waited: Waiting | None = None
    """What it last waited for; None once that was answered: its time may still run out, and means nothing."""
    scheduled: bool = False
    """Whether a wait of it has an end that the bus keeps."""
    unanswered: bool = False
    """Nobody raised the budget while the job waited for it."""
    parked_at: datetime | None = None
    rested: timedelta = timedelta()
    """How long it was parked in all, without the time in which its children worked."""
    step_rested: timedelta = timedelta()
    """How long it was parked since its model last spoke."""
    delegated: timedelta = timedelta()
    """How much of that is its own time all the same, because a child worked."""
    decisions: tuple[Decision, ...] = ()
    """What people decided on its calls, the newest last."""
    ended: e.JobCompleted | e.JobFailed | e.JobCancelled | None = None

    @property
    def ended_at(self) -> datetime | None:
        return self.ended.at if self.ended else None

    @property
    def error(self) -> Failure | None:
        return self.ended.error if isinstance(self.ended, e.JobFailed) else None

    @property
    def reason(self) -> str | None:
        """Return why its answer is partial, or why it was cancelled."""
        return (self.ended.reason or None) if isinstance(self.ended, e.JobCompleted | e.JobCancelled) else None


class Conversation(NamedTuple):
    """What was said, as the model is shown it."""

    history: tuple[ChatMessage, ...] = ()
    """What was said before it: as its submission tells, or in its session. The latter is in no event: its holder reads
    it where `session.continued` says."""
    messages: tuple[ChatMessage, ...] = ()
    steering: tuple[e.SessionSteered, ...] = ()
    """Words of later jobs, which the next call says behind all messages; they are messages from then on."""
    attachments: tuple[Attachment, ...] = ()
    """The documents that its messages and its agent name."""
    compacted: bool = False
    """Whether messages gave way to a summary since the last model call."""
    prompt_tokens: int | None = None
    """What the provider counted when the model last spoke, its words included, else about what it was sent; None: the
    history is another now."""
    density: float | None = None
    """How many tokens its model's provider counted for each that was estimated: in the last answered call, else in its
    session's last job or in its agent's recent ones; None: nobody has counted."""
    is_density_known: bool = False
    """Whether the log said it before the first call: only then is it used where no budget is to be kept."""
    compacting_at: int | None = None
    """The step after which a summary was last asked for, whatever came of it."""

    @property
    def prompted(self) -> tuple[ChatMessage, ...]:
        """Return all messages of a prompt: those before the job, then its own."""
        return (*self.history, *self.messages) if self.history else self.messages

    @property
    def steered(self) -> tuple[ChatMessage, ...]:
        """Return all messages of the next prompt: words that came meanwhile stand at its end."""
        if not self.steering:
            return self.prompted
        return (*self.prompted, *(event.message for event in self.steering))

    @property
    def last_said(self) -> AssistantMessage | None:
        """Return the newest message of the model."""
        for message in reversed(self.messages):
            if message.role == "assistant":
                return message
        return None


class ModelCalls(NamedTuple):
    """The model calls of the conversation and those beside it: how far the last ones are."""

    step: int = 0
    """The number of the last request's step, from 1."""
    attempt: int = 0
    """The number of the last request in its step; 0 once it was answered."""
    asked: e.ModelRequested | None = None
    """The last call, whatever became of it."""
    open: e.ModelRequested | None = None
    """A call whose end is not in the log: it is under way, or its holder was killed."""
    failed: e.ModelFailed | None = None
    """The last call, if it failed and was not repeated."""
    failures: int = 0
    """Failed calls of this model in a row; those that were only lost are not counted."""
    failing_since: datetime | None = None
    """When the model failed for the first time since it last answered, or was found to be left alone."""
    waited_for: int | None = None
    """How many failures in a row there were when the job last parked for the provider."""
    stop_reason: str = ""
    """Why the model stopped when it last said something."""
    refusal: str = ""
    """How the provider named that, where the model refused."""
    aux_open: e.AuxiliaryRequested | None = None
    """An auxiliary call whose end is not in the log."""
    aux_calls: int = 0
    """Auxiliary calls that were begun."""


class Family(NamedTuple):
    """The job that started this one, and those that it started."""

    parent: Parent | None = None
    children: tuple[Child, ...] = ()
    overdue: bool = False
    """Whether the time is over in which the children of this step should have ended."""
    children_usd: Decimal | None = Decimal(0)
    """What the children cost that have ended, with all below them."""
    children_most_usd: Decimal | None = Decimal(0)
    """The most that they can have cost."""


class Routing(NamedTuple):
    """What the router pinned, and which model the job is with now."""

    agent_version: int | None = None
    agent_label: str | None = None
    config: AgentConfig | None = None
    route: Route | None = None
    limits: e.Limits | None = None
    candidates: e.Candidates = e.Candidates()
    agents: tuple[e.StartableAgent, ...] = ()
    tried: tuple[str, ...] = ()
    """Every model the job was routed to, as `provider/model`."""
    escalated: bool = False
    classified: bool = False
    """Whether its type of task was asked for: once, whatever came of it."""

    @property
    def card(self) -> ModelCard:
        """Return what is known of the model that the job is routed to; little, where the router knew no more."""
        assert self.route is not None
        known = self.candidates.card(self.route.name)
        return known or ModelCard(provider=self.route.provider, model=self.route.model, tier=self.route.tier)


class Session(NamedTuple):
    """The job as a turn of its session."""

    turn: Turn | None = None
    continued: e.SessionContinued | None = None
    """Set once its turn has come, where there is a job before it."""
    summarised: bool = False
    """Whether a summary took the place of the history: from then on its own log holds all that its prompts do."""
    steered_by: tuple[str, ...] = ()
    """Later jobs whose words a model call of this one has said."""
    into: str | None = None
    """The job that was running when it came, and that shall take its words."""
    handed_to: str | None = None
    """The job that has said its words in its place."""

    @property
    def history_end(self) -> e.HistoryEnd | None:
        """Return where the history ends that its prompts begin with."""
        return None if self.continued is None or self.summarised else self.continued.after


class Context(NamedTuple):
    """What the conversation is about, its session's jobs before included."""

    entities: tuple[KnownEntity, ...] = ()
    """The newest of each type, the newest last."""
    untold: tuple[KnownEntity, ...] = ()
    """Those of which the model was not told yet."""
    tools_used: tuple[str, ...] = ()
    tools_discovered: tuple[str, ...] = ()
    """Those that were found after the first call of some job, the newest last."""
    memories: tuple[KnownMemory, ...] = ()
    """What the model was told of what is remembered of its user, as far as its prompts still hold it."""


class Remembering(NamedTuple):
    """How far a job is that remembers what its user said in other jobs, or summarises what is remembered."""

    begun: bool = False
    """Whether a helper model was asked, or could not be."""
    extracted: e.MemoryExtracted | None = None
    summarized: e.MemorySummarized | None = None
    saved: e.MemorySaved | None = None
    failed: e.AuxiliaryFailed | None = None
    """How the last call ended that brought nothing."""
    failures: int = 0
    failing_since: datetime | None = None
    waited_for: int = 0
    """How many failures there were when the job was last parked for the helper model's provider."""

    @property
    def may_ask_again(self) -> bool:
        """Return whether the job has waited since the last failure."""
        return 0 < self.failures == self.waited_for


class ModelTotals(NamedTuple):
    """What the answered calls of one model in one slot used."""

    model: str
    """`provider/model`"""
    slot: Slot
    calls: int = 0
    output_tokens: int = 0
    longest_tokens: int = 0
    counted_tokens: int = 0
    """Of the prompts that were both counted by the provider and estimated."""
    estimated_tokens: int = 0

    @property
    def density(self) -> float | None:
        """Return how many tokens of prompts its provider counted for each estimated one; None: it counted none."""
        return density(self.counted_tokens, self.estimated_tokens)

    def plus(self, output_tokens: int, *, counted_tokens: int = 0, estimated_tokens: int = 0) -> ModelTotals:
        """Add a call; its prompt counts where it was counted and estimated."""
        both = counted_tokens > 0 and estimated_tokens > 0
        return ModelTotals(
            self.model,
            self.slot,
            self.calls + 1,
            self.output_tokens + output_tokens,
            max(self.longest_tokens, output_tokens),
            self.counted_tokens + (counted_tokens if both else 0),
            self.estimated_tokens + (estimated_tokens if both else 0),
        )


class Money(NamedTuple):
    """What the job used, what that cost, and what it may spend."""

    usage: Usage = Usage()
    used: tuple[ModelTotals, ...] = ()
    """What its answered calls used, by model and slot."""
    cost_usd: Decimal | None = Decimal(0)
    costs: JobCosts = JobCosts()
    """What `cost_usd` is made of, and what calls whose usage never arrived may have cost beside it."""
    held_usd: Decimal | None = None
    """What is held for the job, spent and unspent together; None: no budget counts it."""
    budget_usd: Decimal | None = None

    @property
    def spent_usd(self) -> Decimal | None:
        """Return the most it can have cost by now; None if a price is unknown."""
        return plus(self.cost_usd, self.costs.unsettled_upper_usd)


class Job(NamedTuple):
    """A job's state; begins empty and changes only through `evolve`.

    Tuples, because an executor holds thousands and makes a new one for each event.
    """

    job_id: str = ""
    tenant: str = ""
    seq: int = 0
    at: datetime | None = None
    life: Life = Life()
    conversation: Conversation = Conversation()
    model: ModelCalls = ModelCalls()
    tools: Tools = Tools()
    code: Code = Code()
    routing: Routing = Routing()
    money: Money = Money()
    session: Session = Session()
    family: Family = Family()
    context: Context = Context()
    remembering: Remembering = Remembering()

    @property
    def working_context(self) -> WorkingContext:
        """Return what is known of the conversation without its messages."""
        return WorkingContext(
            entities=self.context.entities,
            tools_used=self.context.tools_used,
            tools_discovered=self.context.tools_discovered,
            memories=self.context.memories,
        )
