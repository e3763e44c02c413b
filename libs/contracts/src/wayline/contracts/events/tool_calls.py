"""Tools that a model is told of, its calls of them, and what a human decides where an outcome is unknown."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from wayline.contracts.base import Usd
from wayline.contracts.chat import Citation, ToolImage
from wayline.contracts.events.event import Event
from wayline.contracts.tools import Effect, ToolDefinition, ToolError


class ToolsDiscovered(Event):
    """Tools that the model was told of after its first call: it reaches them through `use_tool`."""

    type: Literal["tools.discovered"] = "tools.discovered"
    tools: tuple[ToolDefinition, ...]


class ToolRequested(Event):
    """A tool is about to be called: whoever calls it again does so with the same key."""

    type: Literal["tool.requested"] = "tool.requested"
    step: int
    call: str
    tool: str
    arguments: dict[str, Any]
    effect: Effect
    key: str


class ToolCompleted(Event):
    """A tool call is over, and what came of it is what the model is shown."""

    type: Literal["tool.completed"] = "tool.completed"
    step: int
    call: str
    tool: str
    status: Literal["success", "failed", "skipped"]
    content: str = Field(default="", description="What the model is shown.")
    full: str | None = Field(default=None, description="The whole result, where the model was shown a shorter form.")
    images: tuple[ToolImage, ...] = Field(default=(), description="What the model is shown with `content`.")
    citations: tuple[Citation, ...] = ()
    error: ToolError | None = None
    duration_ms: float = 0
    size_bytes: int = 0
    tokens: int = 0
    cost_usd: Usd | None = None
    repeat_of: str | None = Field(
        default=None,
        description="The identical call, as `step/call`, whose result this is: the tool was not asked again.",
    )


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
