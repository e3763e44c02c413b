"""How the offline model plans tasks: each tool for planning once, in their order; it weighs nothing and says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wayline.contracts.chat import AssistantMessage, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.framed_words import unframed
from wayline.contracts.plan_input import PlanInput, read_plan_input
from wayline.contracts.tools import TASK_TOOLS
from wayline.llm.characters import joined_all
from wayline.llm.model import ModelRequest

REASONING = (
    "(Planned by the extractive offline model: it called each tool once and does not reason. The order keeps to the "
    "dependencies that were found in words, then to how much work waits for a task, then to its priority and id; "
    "nothing was weighed against the outcome.)"
)
SEARCHED = 8
SEARCH_MAX_CHARS = 2_000
DOCUMENTS_READ_MAX = 8
DOCUMENTS_FOUND_MAX = 3
"""Documents that are read where nobody said which: those of the best passages."""
NAMES_MAX = 200
_JSON = json.JSONDecoder()


def plans(request: ModelRequest) -> bool:
    """Return whether a request is for a plan: all tools for planning are there, and an order of tasks is asked for."""
    schema = request.output_schema or {}
    properties = schema.get("properties")
    asked = isinstance(properties, dict) and "prioritized_tasks" in properties
    return asked and {tool.name for tool in request.tools} >= set(TASK_TOOLS)


def plan(asked: UserMessage, results: Sequence[ToolMessage]) -> AssistantMessage:
    """Call the next tool that was not called yet, else answer."""
    given = _given(asked)
    called = {message.tool for message in results}
    found = {message.tool: _value(message) for message in results if not message.failed}
    for tool in TASK_TOOLS:
        arguments = None if tool in called else _arguments(tool, given, found)
        if arguments is not None:
            return AssistantMessage(tool_calls=(ToolCall(call="1", tool=tool, arguments=arguments),))
    tasks = [*_tasks(given, found)]
    order = [{"id": task["id"], "reason": "in the order of the input"} for task in tasks]
    citations = tuple(one for message in results for one in message.citations)
    answer = json.dumps({"prioritized_tasks": order, "reasoning": REASONING}, ensure_ascii=False)
    return AssistantMessage(text=answer, citations=citations)


def _given(asked: UserMessage) -> PlanInput:
    read = read_plan_input("\n".join(part.text for part in asked.parts if isinstance(part, TextPart)))
    files = tuple(part.document_id for part in asked.parts if part.type == "file")
    return read.model_copy(update={"document_ids": tuple(dict.fromkeys((*read.document_ids, *files)))})


def _value(message: ToolMessage) -> dict[str, Any]:
    """Return what a tool returned as JSON, also where words follow it; nothing where it cannot be read."""
    try:
        value, _ = _JSON.raw_decode(unframed(message.content).lstrip())
    except (ValueError, RecursionError):
        return {}
    return joined_all(value) if isinstance(value, dict) else {}


def _arguments(tool: str, given: PlanInput, found: Mapping[str, dict[str, Any]]) -> dict[str, Any] | None:
    """Return what a tool is called with; None: there is nothing to call it with."""
    documents = [*given.document_ids[:DOCUMENTS_READ_MAX]]
    tasks = [*_tasks(given, found)]
    match tool:
        case "semantic_search":
            within = {"document_ids": documents} if documents else {}
            query = given.outcome.strip() or " ".join(task["name"] for task in tasks)
            return {"query": query[:SEARCH_MAX_CHARS], "top_k": SEARCHED, **within} if query else None
        case "get_document_context":
            passage = next(_passages(found), None)
            if passage is not None:
                return {"document_id": passage["document_id"], "chunk_id": passage["chunk_id"]}
            return {"document_id": documents[0]} if documents else None
        case "detect_dependencies":
            # Unasked, documents bring tasks only where nobody gave any: sentences of others may name ours by chance.
            read = documents or ([] if tasks else [*_found_documents(found)])
            return {**({"tasks": tasks} if tasks else {}), **({"document_ids": read} if read else {})}
        case "query_task_graph":
            names = [task["name"] for task in tasks][:NAMES_MAX]
            return {"names": names} if names else {"text": given.outcome[:SEARCH_MAX_CHARS]}
        case _:
            return {"tasks": tasks} if tasks else None


def _tasks(given: PlanInput, found: Mapping[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the tasks that were given, else those that were read in documents."""
    for one in given.numbered:
        yield one.model_dump(mode="json", exclude_defaults=True) | {"id": one.id}
    read = () if given.tasks else found.get("detect_dependencies", {}).get("tasks")
    for one in read if isinstance(read, list) else ():
        if isinstance(one, dict) and isinstance(one.get("id"), str) and isinstance(one.get("name"), str):
            yield {"id": one["id"], "name": one["name"]}


def _passages(found: Mapping[str, dict[str, Any]]) -> Iterator[dict[str, str]]:
    read = found.get("semantic_search", {}).get("passages")
    for one in read if isinstance(read, list) else ():
        if isinstance(one, dict) and isinstance(one.get("document_id"), str) and isinstance(one.get("chunk_id"), str):
            yield one


def _found_documents(found: Mapping[str, dict[str, Any]]) -> list[str]:
    documents = dict.fromkeys(one["document_id"] for one in _passages(found))
    return [*documents][:DOCUMENTS_FOUND_MAX]
