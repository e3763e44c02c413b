"""Who uses which tools: agents, parked jobs, and the recorded calls of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from wayline.contracts.base import Frozen, Request

TOOLS_MAX = 4_000
VERSIONS_MAX = 2_000
SHOWN_MAX = 100
"""Of agents and of jobs, in one answer; their numbers count all of them."""

ToolNames: TypeAlias = Annotated[tuple[str, ...], Field(max_length=TOOLS_MAX)]


class AgentVersion(Frozen):
    """One version of an agent."""

    name: str
    version: int


class AgentsUsing(Frozen):
    """Agents that may use at least one of the tools that were asked for."""

    total: int = Field(ge=0, description="Agents whose current version may.")
    agents: tuple[AgentVersion, ...] = Field(description="The first of them by name, at most 100.")
    versions: tuple[AgentVersion, ...] = Field(description="Those of the versions that were asked for which may.")


class FindAgentsUsing(Request, subject="agents.using.{tenant}", replies=AgentsUsing):
    """Ask which agents may use at least one of some tools."""

    tools: ToolNames
    versions: tuple[AgentVersion, ...] = Field(
        default=(), max_length=VERSIONS_MAX, description="Versions to judge beside the current ones of all agents."
    )


class ToolCallCount(Frozen):
    """How often jobs called one tool."""

    tool: str
    calls: int = Field(ge=1)


class ToolUse(Frozen):
    """The recorded calls of some tools, and whose jobs are parked."""

    counts: tuple[ToolCallCount, ...]
    jobs: int = Field(ge=0, description="Jobs that made these calls.")
    parked: tuple[AgentVersion, ...] = Field(description="The agents of all parked jobs, whatever tools they use.")


class GetToolUse(Request, subject="traces.tooluse.{tenant}", replies=ToolUse):
    """Ask how often jobs called some tools since a moment."""

    tools: ToolNames
    since: datetime


class ToolFigures(Frozen):
    """How the recorded calls of one tool went."""

    calls: int = Field(default=0, ge=0, description="Of the newest 50,000 steps since the moment that was asked for.")
    jobs: int = Field(default=0, ge=0, description="Jobs that made them.")
    failed: dict[str, int] = Field(
        default_factory=dict, description="How many failed, by code; `unknown` where an older build has kept none."
    )
    p50_ms: float | None = Field(default=None, description="Half of them took no longer; null: none has ended.")
    p95_ms: float | None = None


class GetToolFigures(Request, subject="traces.tool.{tenant}", replies=ToolFigures):
    """Ask how the recorded calls of a tool went since a moment, those through `use_tool` included."""

    tool: str
    since: datetime


class NamedToolFigures(Frozen):
    """How the recorded calls of one of several tools went."""

    tool: str
    calls: int = Field(ge=1)
    failed: int = Field(default=0, ge=0)
    p50_ms: float | None = Field(default=None, description="Half of them took no longer; null: none has ended.")
    p95_ms: float | None = None


class AllToolFigures(Frozen):
    """How the recorded calls of all tools went that were called."""

    tools: tuple[NamedToolFigures, ...] = Field(description="The most called ones first, at most 2,000.")


class GetAllToolFigures(Request, subject="traces.tools.{tenant}", replies=AllToolFigures):
    """Ask how the recorded calls of all tools went since a moment, those through `use_tool` included."""

    since: datetime


class ParkedJob(Frozen):
    """A parked job that uses a tool."""

    job_id: str
    agent: str
    agent_version: int | None = None
    why: str
    waits_for_tool: bool = Field(description="What it waits for is about a call of one of the tools.")


class ParkedJobs(Frozen):
    """Parked jobs that use some tools."""

    total: int = Field(ge=0)
    jobs: tuple[ParkedJob, ...] = Field(description="The newest of them, at most 100.")


class FindParkedJobs(Request, subject="jobs.parked.{tenant}", replies=ParkedJobs):
    """Ask for parked jobs that wait because of a call of some tools, or belong to some agents."""

    tools: ToolNames
    agents: tuple[AgentVersion, ...] = Field(max_length=VERSIONS_MAX)


class RecordedCall(Frozen):
    """One call as a job made it."""

    job_id: str
    step: int
    call: str
    tool: str
    arguments: dict[str, Any] | None = Field(description="None: longer than tracing keeps; the job's log has them.")
    error: str | None = Field(default=None, description="The code with which it failed; None: it did not, or unknown.")


class RecordedCalls(Frozen):
    """A page of recorded calls, newest first."""

    calls: tuple[RecordedCall, ...]
    next_cursor: str | None = None


class ListRecordedCalls(Request, subject="traces.toolcalls.{tenant}", replies=RecordedCalls):
    """Ask for the recorded calls of some tools since a moment, with their arguments."""

    tools: ToolNames
    since: datetime
    cursor: str | None = None


class UsedTool(Frozen):
    """In how many jobs of an agent a tool was called."""

    tool: str
    jobs: int = Field(ge=1)


class AgentToolUse(Frozen):
    """The tools that the newest jobs of one agent called."""

    agent: str
    jobs: int = Field(ge=1, description="Ended jobs that were looked at: the newest ones, at most 1,000.")
    tools: tuple[UsedTool, ...] = Field(description="The most used ones first.")
    always: tuple[str, ...] = Field(
        default=(), description="Those that were called in more than half of at least 10 jobs, loaded always or not."
    )


class AgentsToolUse(Frozen):
    """What agents call, by name."""

    agents: tuple[AgentToolUse, ...]


class GetAgentsToolUse(Request, subject="traces.usage.{tenant}", replies=AgentsToolUse):
    """Ask which tools the jobs of agents called since a moment."""

    agent: str | None = Field(default=None, description="None: all agents.")
    since: datetime
