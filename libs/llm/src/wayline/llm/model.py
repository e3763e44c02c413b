"""What a model is to Wayline: a request of our own types in, a stream of our own events out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from wayline.contracts.chat import AssistantMessage, Attachment, ChatMessage
from wayline.contracts.models import Effort, ModelCard
from wayline.contracts.money import Usage
from wayline.contracts.tools import ToolDefinition

StopReason = Literal[
    "end", "tools", "max_tokens", "stop_sequence", "refused", "paused", "context_full", "time_limit", "unknown"
]
"""Why a model stopped, in one vocabulary for all providers; `unknown`: nobody has said that its message is whole."""

ErrorCode = Literal[
    "rate_limited",
    "spend_cap",
    "overloaded",
    "server_error",
    "connection",
    "timeout",
    "stream_cut",
    "invalid_request",
    "authentication",
    "context_too_long",
    "unknown_model",
    "unknown_provider",
    "unsupported_input",
    "unreadable",
]


ATTEMPT_HEADER = "X-Wayline-Attempt"


@dataclass(frozen=True, slots=True)
class File:
    """An image or a document that a message names by its id."""

    name: str
    media_type: str
    content: str
    """As models are sent it: text as it is, anything else in base64."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model: the same bytes for the same job state, so that a provider's cache holds."""

    card: ModelCard
    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDefinition, ...]
    """Sorted by name."""
    max_output_tokens: int
    attempt_id: str
    """Sent along as a header, so that a provider's bill can be matched with the log."""
    temperature: float | None = None
    effort: Effort | None = None
    thinking_tokens: int | None = None
    """For models whose thinking has a budget."""
    output_schema: dict[str, Any] | None = None
    cache_key: str = ""
    """The same for all jobs that share a prefix: a provider may use it to find the machine that has it."""
    breakpoints: tuple[int, ...] = ()
    """Messages, by index, after which the prefix is worth keeping; tools and system prompt always are."""
    files: Mapping[str, File] = field(default_factory=dict)
    """What the messages' image and file parts name, by document id."""
    attachments: Mapping[str, Attachment] = field(default_factory=dict)
    """What is known of them, by document id: what is counted and compared, where their bytes are what is sent."""

    @property
    def model(self) -> str:
        """Return the name that is sent to the provider."""
        return self.card.model


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Some more of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class UsageSeen:
    """What the provider has counted so far, for the case that the stream never ends."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Finished:
    """The whole message and what it used."""

    message: AssistantMessage
    usage: Usage | None
    """None: the provider told none, and nobody can say what the answer cost."""
    stop_reason: StopReason
    notes: tuple[str, ...] = ()
    """What was not sent as configured, and why: `temperature dropped: the model takes none`."""
    refusal: str = ""
    """Of a refusal, how the provider names it: `cyber`, `hate: high`; empty: not at all."""


Piece = TextDelta | UsageSeen | Finished


class ModelError(Exception):
    """A call that did not end in a message."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        retryable: bool,
        after_s: float | None = None,
        billable: bool = False,
        usage: Usage | None = None,
        param: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.after_s = after_s
        self.billable = billable
        """Whether the provider may have begun to answer, and so bill for it: not for what it refused outright."""
        self.usage = usage
        """What the provider has counted in the end, where it says that of a call that failed."""
        self.param = param
        """The part of the request that was refused, where the provider names one."""


class Model(Protocol):
    """A provider's models, behind one method."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        """Yield text as it comes, then `Finished`, once and last. Raises ModelError."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Warmable(Protocol):
    """A model whose first call would have to wait for more than its provider."""

    async def warm(self) -> None:
        """Do now what the first call would wait for."""
        ...
