"""Calls of models: those of the conversation, and the auxiliary ones beside it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wayline.contracts.base import Frozen, Usd
from wayline.contracts.chat import AssistantMessage
from wayline.contracts.events.event import Event
from wayline.contracts.jobs import Failure
from wayline.contracts.money import Usage
from wayline.contracts.tools import ToolDefinition


class Segment(Frozen):
    """A part of a prompt by its hash: what two calls have in common is what a provider's cache can keep.

    All messages are one segment, so that a log stays linear in what was said: with the count of the call before, the
    next call can tell whether its own first so many messages are still those.
    """

    part: Literal["tools", "system", "messages"]
    hash: str
    count: int = Field(default=1, description="How many tools or messages it covers.")
    tokens: int = Field(default=0, description="Estimated.")


CacheBreak = Literal[
    "model_changed",
    "agent_changed",
    "tools_changed",
    "system_changed",
    "compaction",
    "history_lost",
    "history_edited",
    "expired",
]
"""Why a provider's cache cannot continue the call before."""


class ModelRequested(Event):
    """A model is about to be called: what it is asked, and the most that can cost."""

    type: Literal["model.requested"] = "model.requested"
    step: int
    attempt: int
    attempt_id: str
    provider: str
    model: str
    tools: tuple[ToolDefinition, ...] | None = Field(
        default=None, description="The tools offered; None: the same as in the request before."
    )
    absent: tuple[str, ...] = Field(
        default=(),
        description="Servers of whose tools the agent may use some, and of which none was listed when the job began.",
    )
    deferred_tokens: int = Field(
        default=0,
        description="Estimated tokens of definitions that its prompt is spared, because tools are found when needed.",
    )
    prefix: tuple[Segment, ...] = Field(default=(), description="What the prompt is made of, in order.")
    cache_break: CacheBreak | None = Field(
        default=None, description="Why the prompt does not continue the one before; None: it does, or it is the first."
    )
    worst_usd: Usd | None = Field(default=None, description="The most this call can cost; None: price unknown.")
    held_usd: Usd | None = Field(
        default=None, description="What is held for the job from this call on; None: the same as before."
    )
    room_tokens: int | None = Field(
        default=None, description="The room for its output, where the job's own budget pays less than was wanted."
    )

    @property
    def estimated_tokens(self) -> int:
        """Return the estimated tokens of its prompt."""
        return sum([part.tokens for part in self.prefix])


class Bounds(Frozen):
    """Between what a call can have cost whose usage never arrived; None: its price is unknown."""

    lower_usd: Usd | None
    upper_usd: Usd | None


class ModelCompleted(Event):
    """A model has answered; this call is never made again."""

    type: Literal["model.completed"] = "model.completed"
    step: int
    attempt: int
    attempt_id: str
    message: AssistantMessage
    usage: Usage
    cost_usd: Usd | None
    stop_reason: str
    duration_ms: float
    first_token_ms: float | None = None
    saved_usd: Usd | None = Field(default=None, description="What the provider's cache saved; below 0: it cost.")
    notes: tuple[str, ...] = Field(default=(), description="What was not sent as configured, and why.")
    unsettled: Bounds | None = Field(
        default=None, description="Set where the provider told no usage: there is no cost then, and `usage` is empty."
    )
    refusal: str | None = Field(
        default=None, description="Where it refused, how the provider names that: `cyber`, `hate: high`."
    )


LOST = "lost"
"""The error code of a model call that nobody saw end: its holder was killed."""


class ModelFailed(Event):
    """A call without a message. What it had streamed is void: a client that showed it takes it back."""

    type: Literal["model.failed"] = "model.failed"
    step: int
    attempt: int
    attempt_id: str
    error: Failure
    retryable: bool
    usage: Usage | None = Field(default=None, description="None: the provider's final count never arrived.")
    cost_usd: Usd | None = None
    unsettled: Bounds | None = Field(default=None, description="Set where the provider may have billed it.")
    retracted_chars: int = Field(default=0, description="Streamed characters that are void.")
    after_s: float | None = Field(default=None, description="When the provider said to come back.")
    duration_ms: float = 0


Purpose = Literal[
    "classification", "compaction", "summary", "title", "embedding", "rewrite", "rerank", "image", "memory"
]
"""What an auxiliary call is for."""


class AuxiliaryRequested(Event):
    """A priced call beside the conversation is about to be made: nobody makes it again, whatever becomes of it."""

    type: Literal["aux.requested"] = "aux.requested"
    purpose: Purpose
    about: str | None = Field(default=None, description="The tool call that it is about, as `step/call`.")
    attempt_id: str = Field(description="Unique in the job, and sent to the provider as a header.")
    provider: str
    model: str
    worst_usd: Usd | None = Field(default=None, description="The most this call can cost; None: price unknown.")
    held_usd: Usd | None = Field(
        default=None, description="What is held for the job from this call on; None: the same as before."
    )


class AuxiliaryFailed(Event):
    """An auxiliary call without an answer: the job goes on without it."""

    type: Literal["aux.failed"] = "aux.failed"
    purpose: Purpose
    about: str | None = Field(default=None, description="The tool call that it is about, as `step/call`.")
    attempt_id: str
    error: Failure
    usage: Usage | None = Field(default=None, description="None: the provider's final count never arrived.")
    cost_usd: Usd | None = None
    unsettled: Bounds | None = Field(default=None, description="Set where the provider may have billed it.")
    duration_ms: float = 0


class AuxiliaryCompleted(Event):
    """A priced call beside the conversation: no message of it is part of a prompt."""

    type: Literal["aux.completed"] = "aux.completed"
    purpose: Purpose
    about: str | None = Field(default=None, description="The tool call that it is about, as `step/call`.")
    attempt_id: str = Field(description="Unique in the job, and sent to the provider as a header.")
    provider: str
    model: str
    usage: Usage = Usage()
    cost_usd: Usd | None
    unsettled: Bounds | None = Field(
        default=None, description="Set where the provider told no usage: there is no cost then, and `usage` is empty."
    )
    duration_ms: float = 0
