"""A tenant's settings: what its agents do where they do not say otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from pydantic import ConfigDict, Field

from wayline.contracts.agents import (
    MaxCost,
    MaxOutputTokens,
    MaxSeconds,
    MaxSteps,
    MemoryChoice,
    ModelName,
    Style,
    ToolPatterns,
)
from wayline.contracts.base import Frozen, Request

SWITCHED_TOOLS: dict[str, tuple[str, ...]] = {
    "web_search": ("web_search*", "web_fetch*", "fetch_page*", "*__web_search*", "*__web_fetch*"),
    "memory": (
        *("*memory", "*memories", "memory_*", "remember*", "store_insight", "retrieve_context"),
        *("*__memory_*", "*__remember*"),
    ),
    "images": (
        *("image_generate*", "generate_image*", "edit_image*", "create_image*"),
        *("*__image_generate*", "*__generate_image*", "*__edit_image*"),
    ),
}
"""The tools of each switch, as patterns. A server's tools are named `server__tool`, so both forms are listed."""
MEMORY_WRITING_TOOLS = (
    "*memory_save*",
    "*save_memor*",
    "store_insight",
    "remember*",
    "*__remember*",
    "*__store_insight*",
)
"""Those of them that keep something: not of an agent that may only read."""


def own_tools_off(off: Sequence[str]) -> tuple[str, ...]:
    """Return an agent's `tools_off` without the patterns that a switch adds.

    An agent is read with them while a switch is off. Saved as its own they would stay when the switch is on again.
    """
    there = frozenset(off)
    added = {
        pattern
        for patterns in (*SWITCHED_TOOLS.values(), MEMORY_WRITING_TOOLS)
        if there.issuperset(patterns)
        for pattern in patterns
    }
    return tuple(pattern for pattern in off if pattern not in added)


MEMORY_SAYS = (
    "Let agents remember: true (`read_write`) keeps and finds memories of a job's user, `read` only finds them, false "
    "(`off`) does neither."
)


class TenantSettings(Frozen):
    """What the agents of a tenant do where they do not say otherwise; every field is one of `AgentConfig`."""

    max_steps: MaxSteps = Field(default=5, description="Model calls of a job.")
    adapt_steps: bool = Field(default=True, description="Give a job a share of them by how complex it looks.")
    max_seconds: MaxSeconds = Field(default=600, description="How long a job may take; time that it is parked is free.")
    max_output_tokens: MaxOutputTokens = Field(default=4_096, description="Of one model call.")
    max_cost_usd: MaxCost = Field(
        default=Decimal("0.10"),
        description="What a job may spend. Forms offer 0.01 to 1.00; a budget for each job and hard budgets bound it.",
    )
    style: Style = Field(
        default="balanced",
        description="When agents use tools; said at the head of the system prompt of those that have tools.",
    )
    show_reasoning: bool = Field(default=False, description="Show models' thinking in the events of jobs.")
    tools: ToolPatterns = Field(default=("*",), description="Names or `prefix*` patterns of the tools agents may use.")
    web_search: bool = Field(default=True, description="Let agents use tools that search the web or fetch pages.")
    memory: MemoryChoice = Field(default=True, description=MEMORY_SAYS)
    images: bool = Field(default=True, description="Let agents use tools that make or edit images.")
    summarize_results: bool = Field(default=False, description="Have a helper model summarise long tool results.")
    extract_memories: bool = Field(
        default=False, description="Have a helper model read sessions that have gone quiet for facts that last."
    )
    summarize_memories: bool = Field(
        default=False, description="Have a helper model summarise what is remembered of users."
    )


INHERITED = tuple(TenantSettings.model_fields)
"""The fields of an agent's configuration that it may leave to its tenant's settings."""
DEFAULT_MODEL_SAYS = (
    "`provider/model` of jobs where neither job nor agent names a model; null: the installation's default, else the "
    "cheapest that can do the work. One that cannot be used any more takes no job."
)


class SettingsChange(Frozen):
    """Changed settings: what is left out stays as it is, and null goes back to the default."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"examples": [{"max_steps": 8, "style": None}]}
    )

    max_steps: MaxSteps | None = None
    adapt_steps: bool | None = None
    max_seconds: MaxSeconds | None = None
    max_output_tokens: MaxOutputTokens | None = None
    max_cost_usd: MaxCost | None = None
    style: Style | None = None
    show_reasoning: bool | None = None
    tools: ToolPatterns | None = None
    web_search: bool | None = None
    memory: MemoryChoice | None = None
    images: bool | None = None
    summarize_results: bool | None = None
    extract_memories: bool | None = None
    summarize_memories: bool | None = None
    default_model: ModelName | None = Field(default=None, description=DEFAULT_MODEL_SAYS)


SETTINGS = tuple(SettingsChange.model_fields)
"""All that a tenant may change."""


class SettingsInForce(TenantSettings):
    """A tenant's settings as they are now, and which of them are the defaults."""

    default_model: ModelName | None = Field(default=None, description=DEFAULT_MODEL_SAYS)
    defaults: tuple[str, ...] = Field(default=(), description="Settings that nobody has changed.")
    updated_at: datetime | None = Field(default=None, description="When one was last changed; null: never.")


class GetSettings(Request, subject="settings.get.{tenant}", replies=SettingsInForce):
    """Ask for a tenant's settings."""


class ChangeSettings(Request, subject="settings.change.{tenant}", replies=SettingsInForce):
    """Change some of a tenant's settings: its next jobs go by them, running jobs keep theirs."""

    terse = True

    change: SettingsChange
