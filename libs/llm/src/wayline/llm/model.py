"""What a model is to Wayline: a request of our own types in, a stream of our own events out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from wayline.contracts.chat import AssistantMessage, ChatMessage
from wayline.contracts.money import Usage
from wayline.contracts.tools import ToolDefinition


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model: the same bytes for the same job state, so that a provider's cache holds."""

    model: str
    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDefinition, ...]
    """Sorted by name."""
    max_output_tokens: int
    attempt_id: str
    """Sent along as a header, so that a provider's bill can be matched with the log."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The whole message and what it used."""

    message: AssistantMessage
    usage: Usage
    stop_reason: str


class ModelError(Exception):
    """A call that did not end in a message."""

    def __init__(self, code: str, message: str, *, retryable: bool, after_s: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.after_s = after_s


class Model(Protocol):
    """A provider's models, behind one method."""

    def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | Finished]:
        """Yield text as it comes, then `Finished`, once and last. Raises ModelError."""
        ...

    async def close(self) -> None: ...
