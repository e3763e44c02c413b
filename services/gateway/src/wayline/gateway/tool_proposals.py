"""Propose to load the tools always that an agent's jobs often call."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from wayline.contracts.agents import AgentConfig, ToolLoading
from wayline.contracts.tool_loading import always_loaded
from wayline.contracts.tools import ToolDefinition, may_use


class ProposedTools(BaseModel):
    """An agent's `tools`, with those always loaded that its jobs often call."""

    always: tuple[str, ...]
    deferred: tuple[str, ...]


def proposed_tools(config: AgentConfig, often: Sequence[str], there: Sequence[ToolDefinition]) -> ProposedTools | None:
    """Return an agent's `tools` with those of `often` loaded always that are deferred; None: none of them is.

    The agent may use the same tools as before, and what is loaded always stays so. `there`: all tools of the tenant.
    """
    usable = [tool for tool in there if may_use(tool.name, patterns=config.tools, off=config.tools_off)]
    loaded = [tool.name for tool in always_loaded(config, usable)]
    deferred = {tool.name for tool in usable} - set(loaded)
    new = tuple(name for name in often if name in deferred)
    if not new:
        return None
    now = config.tools_loading or ToolLoading(always=tuple(loaded), deferred=config.tools)
    always = (*now.always, *new)
    return ProposedTools(always=always, deferred=tuple(name for name in now.deferred if name not in always))
