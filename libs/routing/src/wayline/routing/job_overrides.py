"""What a job's own options make of its agent's configuration: less than the agent may, never more. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import Any

from wayline.contracts.agents import AgentConfig
from wayline.contracts.jobs import JobOptions
from wayline.contracts.tenant_settings import MEMORY_WRITING_TOOLS, SWITCHED_TOOLS
from wayline.contracts.tools import BY_NAME, MEMORY_RETRIEVE, MEMORY_SAVE, may_use


def narrowed(config: AgentConfig, options: JobOptions, *, own: Collection[str] = ()) -> AgentConfig:
    """Return the configuration by which one job goes.

    `own`: the fields that its agent sets itself. Thinking that the agent itself hides stays hidden.
    """
    changes: dict[str, Any] = {switch: False for switch in SWITCHED_TOOLS if getattr(options, switch) is False}
    if options.agent_style is not None:
        changes["style"] = options.agent_style
    if options.show_reasoning is not None and (config.show_reasoning or "show_reasoning" not in own):
        changes["show_reasoning"] = options.show_reasoning
    if options.tools_in_order:
        changes["tools_in_order"] = True
    for name in ("effort", "temperature"):
        if getattr(options, name) is not None:
            changes[name] = getattr(options, name)
    if options.output_schema is not None:
        # What the agent assembles, and what it ends with instead, is made for its own schema.
        changes |= {"output_schema": options.output_schema, "assemble": None, "on_invalid": "fail"}
    if options.tools is not None:
        changes |= _narrowed_tools(config, options.tools)
    return without_switched(config.model_copy(update=changes)) if changes else config


def bounded(options: JobOptions, config: AgentConfig, *, own: Collection[str]) -> JobOptions:
    """Return a job's options with no more steps than its agent sets itself."""
    if options.max_steps is None or "max_steps" not in own or options.max_steps <= config.max_steps:
        return options
    return options.model_copy(update={"max_steps": config.max_steps})


def remembering(config: AgentConfig, user_id: str | None) -> AgentConfig:
    """Return the configuration of a job of this user: an agent that has all tools has those of memory, too.

    Without a user there is no one to remember, and no prompt pays for the tools.
    """
    if user_id is None or not config.memory or "*" not in config.tools:
        return config
    names = (MEMORY_SAVE, MEMORY_RETRIEVE) if config.memory is True else (MEMORY_RETRIEVE,)
    return config.model_copy(update={"tools": _joined(config.tools, names)})


def without_switched(config: AgentConfig) -> AgentConfig:
    """Return a configuration that excludes the tools of every switch that is off."""
    off = [pattern for switch, tools in SWITCHED_TOOLS.items() if not getattr(config, switch) for pattern in tools]
    if config.memory == "read":
        off += MEMORY_WRITING_TOOLS
    return config.model_copy(update={"tools_off": _joined(config.tools_off, off)}) if off else config


def _narrowed_tools(config: AgentConfig, wanted: Sequence[str]) -> dict[str, Any]:
    """Return the patterns that both name: the narrower one of each pair of which one lies within the other."""
    within = (pattern for pattern in wanted if any(_covers(wide, pattern) for wide in config.tools))
    kept = (pattern for pattern in config.tools if any(_covers(wide, pattern) for wide in wanted))
    tools = _joined(tuple(within), tuple(kept))
    # The agent has these only by name, and a pattern other than `*` would bring them.
    gained = [
        name for name in sorted(BY_NAME) if may_use(name, patterns=tools) and not may_use(name, patterns=config.tools)
    ]
    return {"tools": tools, "tools_off": _joined(config.tools_off, gained)}


def _covers(wide: str, narrow: str) -> bool:
    """Return whether every name that `narrow` matches is matched by `wide`, as far as the patterns show it."""
    if wide == narrow:
        return True
    return not set("?[") & set(wide) and "[" not in narrow and fnmatchcase(narrow, wide)


def _joined(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
