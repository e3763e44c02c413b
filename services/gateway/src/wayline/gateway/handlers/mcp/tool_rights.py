"""Which tools a key may call outside of any job."""

from __future__ import annotations

from typing import Final

from wayline.contracts.tools import BUILTIN, RUN_AGENT, Effect, ToolDefinition
from wayline.gateway.keys import Caller

WAIT_FOR_JOB: Final = "wait_for_job"
AGENT_TOOLS: Final = frozenset({RUN_AGENT, WAIT_FOR_JOB})


def is_offered(tool: ToolDefinition, caller: Caller) -> bool:
    """Return whether a key may call a tool: built-in ones with `read`, other, web and paid ones with `tools`.

    What does more than read needs `write` as well.
    """
    if tool.name in AGENT_TOOLS:
        return False
    if tool.effect is not Effect.READ and "write" not in caller.scopes:
        return False
    return (tool.server == BUILTIN and not tool.untrusted and tool.charge is None) or "tools" in caller.scopes


def needs_approval(tool: ToolDefinition) -> bool:
    """Return whether a person must approve a call of a tool, which only a job can wait for."""
    return tool.ask == "always" or (tool.ask == "writes" and tool.effect is not Effect.READ)
