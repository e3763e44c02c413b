"""How a model finds the tools that are not in every prompt, and is told of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from wayline.contracts.chat import LoadedTools, ToolCall
from wayline.contracts.searched_tools import FoundTools
from wayline.contracts.tools import (
    BUILTIN,
    TOOL_SEARCH,
    USE_TOOL,
    Effect,
    ToolDefinition,
    ToolError,
    ToolReply,
    may_use,
)
from wayline.executor.prompt.notes import definition, described
from wayline.journal import Job
from wayline.llm.broken_json.tool_arguments import likely_tool
from wayline.llm.tokens import estimate_definitions

RESULTS, RESULTS_MAX = 3, 10
QUERY_CHARS_MAX = 2_000
SERVERS_NAMED_MAX = 20
HEADS_MAX = 256
DEFINITIONS_CHARS_MAX = 16_000
"""Of the definitions of one search; a single one may be longer."""

_SAYS = (files("wayline.executor.prompt") / "tool_search.md").read_text(encoding="utf-8").strip()
_THROUGH = f"call it through {USE_TOOL}"
_THROUGH_OR_BY_NAME = f"{_THROUGH} unless it is among your tools"
_ENABLE = "An administrator of this agent can change that"


def tool_search(deferred: Sequence[ToolDefinition]) -> ToolDefinition:
    """Return the tool that finds these."""
    return _tool_search(tuple(sorted({tool.server for tool in deferred} - {BUILTIN, ""})))


@lru_cache(HEADS_MAX)
def _tool_search(servers: tuple[str, ...]) -> ToolDefinition:
    """Return the same object for the same servers: prompts that begin alike are hashed once."""
    more = f" and {len(servers) - SERVERS_NAMED_MAX} more" if len(servers) > SERVERS_NAMED_MAX else ""
    of = f" There are tools of {', '.join(servers[:SERVERS_NAMED_MAX])}{more}." if servers else ""
    return ToolDefinition(
        name=TOOL_SEARCH,
        description=_SAYS + of,
        input_schema={
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "max_results": {"type": "integer", "minimum": 1, "maximum": RESULTS_MAX, "default": RESULTS},
            },
            "required": ["query"],
        },
        effect=Effect.READ,
    )


def is_search(job: Job, call: ToolCall) -> bool:
    """Return whether a call is one of `tool_search` by a job that has it."""
    return call.tool == TOOL_SEARCH and job.tools.searched


class Search(NamedTuple):
    """What the model looks for."""

    query: str
    at_most: int


def search_of(call: ToolCall) -> Search | ToolReply:
    """Return what a call of `tool_search` looks for, or what is wrong with it."""
    query, at_most = call.arguments.get("query"), call.arguments.get("max_results", RESULTS)
    if not isinstance(query, str) or not query.strip():
        return _failed("invalid_arguments", f"{TOOL_SEARCH} takes `query`, words on what the tool should do")
    if isinstance(at_most, bool) or not isinstance(at_most, int):
        return _failed("invalid_arguments", f"`max_results` is a number from 1 to {RESULTS_MAX}")
    return Search(query.strip()[:QUERY_CHARS_MAX], min(max(1, at_most), RESULTS_MAX))


class SearchReply(NamedTuple):
    """What the model is told of a search, and which tools it knows from then on."""

    content: str
    tools: tuple[ToolDefinition, ...]
    loaded: LoadedTools | None


def tell_found(job: Job, found: FoundTools) -> SearchReply:
    """Return a search's result, without the tools that the model has come to know meanwhile.

    A tool that it loads comes with its whole definition; those without room for it are named.
    """
    new = tuple(one.tool for one in found.tools if job.tools.definition(one.tool.name) is None)
    known = (*found.loaded, *(one.tool.name for one in found.tools if one.tool not in new))
    told = _fitting(new)
    beside = "\n".join((*_not_told(new, told), *_beside(job, known, found)))
    if not new:
        nothing = (
            "" if known else f"None of {found.searched} tools fits: try other words for what it should do or return."
        )
        return SearchReply("\n".join(filter(None, (nothing, beside))), (), None)
    text = described(told, "\n\n".join(definition(tool, _THROUGH) for tool in told))
    loaded = LoadedTools(names=tuple(tool.name for tool in told), beside=beside)
    return SearchReply("\n\n".join(filter(None, (text, beside))), told, loaded)


def _fitting(tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """Return the tools that a result has room for, the first one always."""
    fitting: list[ToolDefinition] = []
    left = DEFINITIONS_CHARS_MAX
    for tool in tools:
        size = len(definition(tool, _THROUGH))
        if size <= left or not fitting:
            fitting.append(tool)
            left -= size
    return tuple(fitting)


def _not_told(new: Sequence[ToolDefinition], told: Sequence[ToolDefinition]) -> list[str]:
    names = ", ".join(tool.name for tool in new if tool not in told)
    return [f"There is no room for the definitions of {names}: search for one by its name."] if names else []


def _beside(job: Job, known: Sequence[str], found: FoundTools) -> list[str]:
    lines = [f"You have already: {', '.join(known)}."] if known else []
    lines += [
        f"{one.name} fits too, but cannot be called here: {one.why}. To enable it: {one.how}." for one in found.unusable
    ]
    told, config = {one.name for one in found.unusable}, job.routing.config
    # A registry of the version before says no more than the names.
    for name in (name for name in found.disabled if name not in told and not found.unusable):
        off = config is not None and may_use(name, patterns=config.tools)
        why = "is switched off for this agent (`tools_off`, `web_search` …)" if off else "is not among its `tools`"
        lines.append(f"{name} fits too, but {why}: it cannot be called here. {_ENABLE}.")
    return lines


def tell_unloaded(tool: ToolDefinition) -> str:
    """Return what a model is told that called a tool before it knew the definition."""
    text = described((tool,), definition(tool, _THROUGH_OR_BY_NAME))
    return f"{tool.name} was not called, because it had not been loaded. It is now; call it again:\n\n{text}"


def tell_unknown(name: str, listed: Sequence[ToolDefinition]) -> ToolReply:
    """Return the answer to a call of a tool that nobody knows."""
    near = likely_tool(name, [tool.name for tool in listed])
    hint = f"; did you mean {near!r}?" if near else ""
    return _failed("unknown_tool", f"there is no tool {name!r} here{hint} {TOOL_SEARCH} finds tools by what they do")


def loaded_since(job: Job) -> tuple[ToolDefinition, ...]:
    """Return the tools that the model came to know after its first call, each as it was first told of it.

    A provider that expands a reference does so in its place: another definition would change the prefix.
    """
    pinned = {tool.name for tool in job.tools.offered or ()}
    first: dict[str, ToolDefinition] = {}
    for tool in job.tools.discovered:
        first.setdefault(tool.name, tool)
    return tuple(tool for name, tool in first.items() if name not in pinned)


def deferred_tokens(job: Job, sent: Sequence[ToolDefinition], listed: Sequence[ToolDefinition]) -> int:
    """Estimate the tokens that a prompt is spared, because the tools of the listing that it lacks are to be found.

    What deferring brings into the prompt is paid for, and taken off: below zero it costs more than it spares.
    """
    if not any(tool.name == TOOL_SEARCH for tool in sent):
        return 0
    if job.tools.offered is not None:
        return job.tools.deferred_tokens - estimate_definitions(loaded_since(job))
    names = {tool.name for tool in sent}
    lacking = (tool for tool in listed if tool.name not in names)
    # Later calls go on from this number: what was found before the job is taken off there.
    return estimate_definitions(lacking) - estimate_definitions(_brought(job, sent, listed))


def _brought(job: Job, sent: Sequence[ToolDefinition], listed: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    """Return the tools of a prompt that it has because others are deferred."""
    config, names = job.routing.config, {tool.name for tool in listed}
    complete = config is not None and all(pattern in names for pattern in config.tools)
    return [tool for tool in sent if tool.name == TOOL_SEARCH or (tool.name == USE_TOOL and complete)]


def _failed(code: str, message: str) -> ToolReply:
    return ToolReply(
        status="failed", error=ToolError.model_validate({"code": code, "message": message}), strangers=False
    )
