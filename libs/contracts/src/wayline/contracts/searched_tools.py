"""Searches for tools by what they do."""

from __future__ import annotations

from pydantic import Field

from wayline.contracts.base import Frozen, Request, Usd
from wayline.contracts.tools import ToolDefinition


class FoundTool(Frozen):
    """A tool that fits a search."""

    tool: ToolDefinition
    score: float = Field(description="Higher fits better; scores of one search can be compared, no others.")


class UnusableTool(Frozen):
    """A tool that fits a search, and that the asker cannot call now."""

    name: str
    why: str = Field(description="What is in the way, as the rest of a sentence about it.")
    how: str = Field(description="What enables it, as an instruction to an administrator.")


class FoundTools(Frozen):
    """The tools that fit a search, the best first."""

    tools: tuple[FoundTool, ...] = ()
    loaded: tuple[str, ...] = Field(default=(), description="What fits as well, and the asker had already.")
    disabled: tuple[str, ...] = Field(default=(), description="What fits as well, and the agent may not use.")
    unusable: tuple[UnusableTool, ...] = Field(
        default=(),
        description="Those of `disabled`, and what else fits and nobody can call now, each with how to enable it.",
    )
    searched: int = Field(default=0, description="How many tools were looked at.")
    cost_usd: Usd | None = Field(default=None, description="What its embeddings cost; None: nothing.")


class SearchTools(Request, subject="tools.search.{tenant}", replies=FoundTools):
    """Find the tools that fit a task, by their names, descriptions, parameters and servers."""

    query: str = Field(min_length=1, max_length=2_000)
    max_results: int = Field(default=3, ge=1, le=20)
    patterns: tuple[str, ...] = Field(default=("*",), description="The agent's `tools`.")
    off: tuple[str, ...] = Field(default=(), description="The agent's `tools_off`.")
    loaded: tuple[str, ...] = Field(default=(), description="Tools that the asker has already: named, not found.")
