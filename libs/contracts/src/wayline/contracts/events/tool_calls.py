"""Tools that a model is told of, its calls of them, and what people decide about calls."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from wayline.contracts.base import Frozen, Usd
from wayline.contracts.chat import Citation, LoadedTools, ToolImage
from wayline.contracts.events.event import Event
from wayline.contracts.events.model_calls import Bounds
from wayline.contracts.jobs import ApprovalCause, Status
from wayline.contracts.reranking import FoundPassages
from wayline.contracts.tools import Effect, InputRequest, ToolDefinition, ToolError
from wayline.contracts.working_context import Entity


class ToolsDiscovered(Event):
    """Tools that the model was told of after its first call: it reaches them through `use_tool`."""

    type: Literal["tools.discovered"] = "tools.discovered"
    tools: tuple[ToolDefinition, ...]
    call: str | None = Field(
        default=None, description="The call that loaded them, as `step/call`; None: a listing had them."
    )


class ClientToolsGiven(Event):
    """The job has tools of its caller, in its options: an executor that could not wait for their results leaves it."""

    type: Literal["client_tools.given"] = "client_tools.given"
    tools: tuple[str, ...]


class ToolRequested(Event):
    """A tool is about to be called; every repetition of the call has the same key."""

    type: Literal["tool.requested"] = "tool.requested"
    step: int
    call: str
    tool: str
    arguments: dict[str, Any]
    effect: Effect
    key: str
    program: str | None = Field(
        default=None, description="The call of `run_code` whose program asks for this one; the model does not see it."
    )
    expires_at: datetime | None = Field(
        default=None, description="Of a tool of the job's caller: until when its result is waited for."
    )


class ChildStarted(Event):
    """A call of `run_agent` has become a job of its own; its end will be the call's result."""

    type: Literal["child.started"] = "child.started"
    step: int
    call: str
    child_id: str
    agent: str


class ChildEnd(Frozen):
    """How a job ended that a call of `run_agent` started."""

    job_id: str
    status: Status | None = Field(description="None: it had been told to stop, and was not waited for any longer.")
    cost_usd: Usd | None = Field(default=None, description="With what it started itself; None: unknown.")
    most_usd: Usd | None = Field(default=None, description="The most it can have cost; None: unknown.")
    worked_s: float = Field(default=0, ge=0, description="From its beginning to its end, without the time it waited.")
    tainted_by: str | None = Field(default=None, description="The first untrusted tool whose words it had read.")


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
    entities: tuple[Entity, ...] = Field(default=(), description="What the result is about, as the tool declares it.")
    error: ToolError | None = None
    duration_ms: float = 0
    size_bytes: int = 0
    tokens: int = 0
    cost_usd: Usd | None = None
    unsettled: Bounds | None = Field(
        default=None, description="Between what it may have charged beside `cost_usd`, where nobody knows what it did."
    )
    repeat_of: str | None = Field(
        default=None,
        description="The identical call, as `step/call`, whose result this is: the tool was not asked again.",
    )
    loaded: LoadedTools | None = Field(default=None, description="The definitions in `content`, of `tool_search`.")
    child: ChildEnd | None = Field(default=None, description="The job whose end this is, of a call of `run_agent`.")
    words: Literal["trusted", "strangers"] | None = Field(
        default=None,
        description="Whose words it holds, where the definition of its tool does not tell that: those of strangers "
        "taint the job. None: as the definition says.",
    )
    given: str | None = Field(
        default=None, description="Of a tool of the job's caller: the hash of the result as it was given."
    )
    found: FoundPassages | None = Field(
        default=None,
        description="What a search found, where a model is to choose the best; `content` shows the first.",
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


class ApprovalRequested(Event):
    """A tool call waits until a person approves or denies it; nothing of it has begun."""

    type: Literal["approval.requested"] = "approval.requested"
    approval_id: str
    step: int
    call: str
    tool: str
    arguments: dict[str, Any] = Field(
        description="Checked against the tool's schema; what the call would be made with."
    )
    definition: str = Field(description="The digest of the tool's definition.")
    policy: str = Field(description="The version of the rules, and of the agent, by which it was asked.")
    hash: str = Field(description="Of definition, arguments and policy: what an approval is bound to.")
    why: ApprovalCause
    reason: str = Field(default="", description="The same in a sentence.")
    expires_at: datetime
    program: str | None = Field(
        default=None, description="The call of `run_code` whose program asks for this one, and waits with it."
    )
    given: dict[str, Any] | None = Field(
        default=None, description="The arguments as the program gave them, where wrong types in them were mended."
    )
    input: InputRequest | None = Field(
        default=None,
        description="What the tool's server asks a person for: not whether the call may be made, it was.",
    )


class ApprovalDecided(Event):
    """A person approved or denied a tool call, or (`expired`) nobody did in time; it holds for one call."""

    type: Literal["approval.decided"] = "approval.decided"
    approval_id: str
    decision: Literal["approved", "denied", "expired"]
    arguments: dict[str, Any] | None = Field(
        default=None, description="What the call is made with instead, where the decider edited it."
    )
    answer: dict[str, Any] | None = Field(
        default=None, description="What the tool's server is told, where it asked a person for input."
    )
    hash: str = Field(default="", description="Of definition, approved arguments and policy; empty where denied.")
    reason: str = Field(default="", description="What the model is told where the call was denied.")
    by: str = ""


class DecisionMade(Event):
    """A client answered what a parked job waited for, or (`expired`) nobody did in time."""

    type: Literal["decision.made"] = "decision.made"
    decision_id: str
    outcome: Literal["succeeded", "failed", "retry", "expired"]
    content: str = ""
    by: str = ""
