"""The executor's own tools: the door to tools that came later, and the way back to what was shown in a shorter form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from wayline.contracts import tools
from wayline.contracts.chat import ToolCall
from wayline.contracts.events import StartableAgent, ToolCompleted
from wayline.contracts.tools import (
    RECALL,
    RUN_AGENT,
    RUN_CODE,
    TOOL_SEARCH,
    USE_TOOL,
    Effect,
    ToolDefinition,
    ToolError,
    ToolReply,
)
from wayline.executor.prompt.shorten import cut
from wayline.executor.prompt.tool_discovery import tool_search
from wayline.journal import Job, stranger_of
from wayline.llm.broken_json.tool_arguments import likely_tool
from wayline.llm.tokens import estimate

RECALLED_CHARS = 8_000
"""Of a result in one answer: less than what would be shown in a shorter form again."""
AROUND_CHARS = 400
"""Shown before and after each place that a query finds."""
PLACES_MAX = 10
QUERY_WORDS_MAX = 16

_USE_TOOL = ToolDefinition(
    name=USE_TOOL,
    description=(
        "Call a tool that is not in this list but was announced under TOOL GUIDANCE: by its name, with arguments as "
        "its definition there says."
    ),
    input_schema={
        "type": "object",
        "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["name", "arguments"],
    },
    effect=Effect.READ,
)
_RECALL = ToolDefinition(
    name=RECALL,
    description=(
        "Read the whole of an earlier tool result that was shortened, by the job, step and call named there: a piece "
        "of it from a character on, or the places where a query's words stand."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "job": {"type": "string"},
            "step": {"type": "integer"},
            "call": {"type": "string"},
            "from": {"type": "integer", "minimum": 0},
            "query": {"type": "string"},
        },
        "required": ["step", "call"],
    },
    effect=Effect.READ,
)
_RUN_CODE = ToolDefinition(
    name=RUN_CODE,
    description=(files("wayline.executor.prompt") / "run_code.md").read_text(encoding="utf-8").strip(),
    input_schema={"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    effect=Effect.READ,
    in_order=True,
)
_RUN_AGENT_SAYS = (files("wayline.executor.prompt") / "run_agent.md").read_text(encoding="utf-8").strip()
OWN = frozenset({USE_TOOL, RECALL, RUN_CODE, RUN_AGENT, TOOL_SEARCH})


def run_agent(agents: Sequence[StartableAgent]) -> ToolDefinition:
    """Return the tool that starts one of these agents."""
    lines = (f"- {agent.name}: {agent.description}" if agent.description else f"- {agent.name}" for agent in agents)
    return ToolDefinition(
        name=RUN_AGENT,
        description="\n".join((_RUN_AGENT_SAYS, *lines)),
        input_schema={
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": [agent.name for agent in agents]},
                "input": {"type": "string"},
            },
            "required": ["agent", "input"],
        },
        effect=Effect.IDEMPOTENT,
    )


def pin(
    patterns: Sequence[str],
    listed: Sequence[ToolDefinition],
    *,
    code: bool = False,
    agents: Sequence[StartableAgent] = (),
    deferred: Sequence[ToolDefinition] = (),
) -> tuple[ToolDefinition, ...]:
    """Return the tools of all prompts of a job, sorted by name: those listed at its first call, and our own.

    `use_tool` where more could come: providers keep tools at the head of the prefix, so none is ever added there.
    `deferred` tools are left to `tool_search`.
    """
    names = {tool.name for tool in listed}
    complete = not deferred and all(pattern in names for pattern in patterns)
    own = ([] if complete else [_USE_TOOL]) + ([_RECALL] if listed or not complete else [])
    own += [_RUN_CODE] if code else []
    own += [run_agent(agents)] if agents else []
    own += [tool_search(deferred)] if deferred else []
    return tuple(sorted([*listed, *own], key=lambda tool: tool.name))


def refusal(job: Job, call: ToolCall) -> ToolReply | None:
    """Return the answer to a call that no tool of the agent could take; None: ask the registry."""
    assert job.routing.config is not None
    if call.tool == USE_TOOL:
        return _failed("invalid_arguments", f"{USE_TOOL} takes `name`, a tool's name, and `arguments`, an object")
    if call.tool == RUN_AGENT:
        return None if job.routing.agents else _failed("unknown_tool", "this agent may start no other agents")
    if may_use(job, call.tool) or call.tool in job.tools.client:
        return None
    known = sorted({tool.name for tool in (*(job.tools.offered or ()), *job.tools.discovered)} - OWN)
    near = likely_tool(call.tool, known)
    hint = f"; did you mean {near!r}?" if near else ""
    return _failed("unknown_tool", f"there is no tool {call.tool!r} here{hint}")


def may_use(job: Job, tool: str) -> bool:
    """Return whether the job's agent may use a tool of this name, whether there is one or not."""
    config = job.routing.config
    assert config is not None
    return tools.may_use(tool, patterns=config.tools, off=config.tools_off)


class RecalledCall(NamedTuple):
    """The earlier call whose result `recall_details` should read."""

    job_id: str | None
    """None: a call of the job itself."""
    step: int
    call: str


def asked_for(call: ToolCall) -> RecalledCall | ToolReply:
    """Return which result `recall_details` should read."""
    job_id, step, number = (call.arguments.get(name) for name in ("job", "step", "call"))
    if isinstance(step, bool) or not isinstance(step, int) or not isinstance(number, str | int):
        return _failed(
            "invalid_arguments", f"{RECALL} takes `step`, a number, and `call`, as the shortened result says"
        )
    return RecalledCall(job_id if isinstance(job_id, str) and job_id else None, step, str(number))


def ended_call(records: Iterable[Sequence[dict[str, Any]]], step: int, call: str) -> dict[str, Any] | None:
    """Find the end of a tool call in the records of a log."""
    for record in records:
        for event in _with_prefix(record):
            if event["type"] == "tool.completed" and (event["step"], event["call"]) == (step, call):
                return event
    return None


def shown_instead(records: Iterable[Sequence[dict[str, Any]]], step: int, call: str) -> dict[str, Any]:
    """Return what the model was shown of a search once its passages were ranked again; empty where they were not."""
    for record in records:
        for event in _with_prefix(record):
            of_call = event["type"] == "passages.reranked" and (event["step"], event["call"]) == (step, call)
            if of_call and event["reranked"]:
                return {"content": event["content"], "citations": event.get("citations", ())}
    return {}


def _with_prefix(record: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a record's events, before a fork's own those that it shares with its origin."""
    for event in record:
        yield from event.get("prefix", ()) if event["type"] == "job.forked" else ()
        yield event


class WholeResult(NamedTuple):
    """The whole result of an ended call, also where the model was shown a shorter form."""

    text: str
    strangers: bool
    """Whether it holds words of theirs."""


def whole_result(job: Job, event: dict[str, Any]) -> WholeResult:
    """Return the whole result of an ended call of a job, or of a job before it in its session."""
    error = event.get("error") or {}
    completed = ToolCompleted.model_validate(event, extra="ignore")
    text = event.get("full") or error.get("message") or event.get("content", "")
    if completed.found is not None and not error:
        # Also those that a model was not shown.
        text = completed.found.shown(range(len(completed.found.passages)))
    return WholeResult(text, stranger_of(job, completed) is not None)


def recalled(call: ToolCall, result: WholeResult | None) -> ToolReply:
    """Return a piece of a result, or the places in it that a query finds."""
    if result is None:
        return _failed("invalid_arguments", "no result with that step and call is in this job")
    whole = result.text
    query = call.arguments.get("query")
    begin = call.arguments.get("from", 0)
    if isinstance(query, str) and query.strip():
        text = _places(whole, query)
    elif isinstance(begin, bool) or not isinstance(begin, int) or not 0 <= begin <= len(whole):
        return _failed("invalid_arguments", f"`from` is a character between 0 and {len(whole)}")
    else:
        text = _piece(whole, begin)
    size = len(text.encode())
    told = {"size_bytes": size, "tokens": estimate(text), "strangers": result.strangers}
    return ToolReply(status="success", content=text, effect=Effect.READ, **told)


def _piece(whole: str, begin: int) -> str:
    end = min(len(whole), begin + RECALLED_CHARS)
    rest = f"; go on with from={end}" if end < len(whole) else "; this is the end"
    return f"{whole[begin:end]}\n[Characters {begin} to {end} of {len(whole)}{rest}]"


def _places(whole: str, query: str) -> str:
    """Return the stretches around the query's words, in order, as many as fit."""
    words = [re.escape(word) for word in query.split()[:QUERY_WORDS_MAX]]
    found: list[tuple[int, int]] = []
    more = ""
    for match in re.finditer("|".join(words), whole, re.IGNORECASE):
        begin, end = max(0, match.start() - AROUND_CHARS), min(len(whole), match.end() + AROUND_CHARS)
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
        if len(found) == PLACES_MAX or sum(end - begin for begin, end in found) > RECALLED_CHARS:
            more = f"\n[There may be more after character {found[-1][1]}]"
            break
    if not found:
        return f"[None of the words of {query!r} is in the {len(whole)} characters of this result]"
    shown = [f"[From character {begin}]\n{whole[begin:end]}" for begin, end in found]
    return cut("\n".join(shown), RECALLED_CHARS - len(more)) + more


def _failed(code: str, message: str) -> ToolReply:
    return ToolReply(
        status="failed", error=ToolError.model_validate({"code": code, "message": message}), strangers=False
    )
