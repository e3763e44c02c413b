"""Bodies about forks and exported jobs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from wayline.contracts import ids
from wayline.contracts.agents import Instructions
from wayline.contracts.chat import Part
from wayline.contracts.jobs import ForkedResult
from wayline.contracts.money import Dollars
from wayline.gateway.shapes.body import Body, Label, Text


class ForkBody(Body):
    """Where a job branches off another one, and what is different from there on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"after": 12, "model": "anthropic/claude-opus-5-5"},
                {"after": 17, "tool_result": {"content": "no such order", "failed": True}},
            ]
        }
    )

    after: int | None = Field(
        default=None, ge=1, description="The last event that both share; left out: before the step that failed."
    )
    model: Label | None = Field(default=None, description="`provider/model` that goes on.")
    input: Text | tuple[Part, ...] | None = Field(
        default=None, description="Another input, where no model has been told the first one by `after`."
    )
    prompt: Instructions | None = Field(default=None, description="Another system prompt.")
    arguments: dict[str, dict[str, Any]] | None = Field(
        default=None, description="Other arguments of calls of the `model.completed` at `after`, by call."
    )
    tool_result: ForkedResult | None = Field(
        default=None, description="In the place of the result of the `tool.completed` at `after`."
    )
    without_memory: tuple[Label, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Facts that its model shall not have been told: would it have answered so without them? Without "
        "`after` both share what was before.",
    )
    budget_usd: Dollars | None = Field(default=None, description="What the fork may spend.")
    max_steps: int | None = Field(default=None, ge=1, le=1_000, description="Those that it shares included.")
    job_id: ids.NewJobId | None = Field(default=None, description="The fork's own id; the same id is the same fork.")


class ExportedAgent(BaseModel):
    """The agent of an exported job, as it was pinned."""

    name: str
    version: int | None = Field(default=None, description="None: the job was refused before it was routed.")
    config: dict[str, Any] | None = None


class ExportedJob(BaseModel):
    """A job as one self-contained file."""

    format: Literal["wayline.job"]
    version: int = Field(description="Of the file's form.")
    job_id: str
    agent: ExportedAgent
    models: list[dict[str, Any]] = Field(description="Cards of the models that it called, with their prices then.")
    history: list[dict[str, Any]] | None = Field(
        default=None,
        description="The messages of its session before it, which its prompts begin with. None: it has none, or they"
        " cannot be read any more.",
    )
    events: list[dict[str, Any]] = Field(description="The log from its first event, every payload in place.")
