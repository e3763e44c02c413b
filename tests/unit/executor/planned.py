"""A job of the bundled planner played without a bus: the model is a function, the tools are the planning library."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.assemblers import TASK_PLAN
from wayline.contracts.chat import AssistantMessage, ToolCall, ToolMessage, UserMessage
from wayline.contracts.framed_words import framed
from wayline.contracts.tools import TASK_TOOLS, Effect, ToolDefinition
from wayline.executor.decide.actions import Action, CallModel, Correct, RunTools
from wayline.llm.model import ModelRequest
from wayline.llm.offline import respond
from wayline.planning import Task, cluster_by_similarity, detect_dependencies, word_vectors

from .logs import PRIMARY, Log

PLANNER = AgentConfig(tools=TASK_TOOLS, output_schema=TASK_PLAN, assemble="task_plan", on_invalid="empty", max_steps=10)
TOOLS = tuple(ToolDefinition(name=name, effect=Effect.READ, server="builtin") for name in TASK_TOOLS)
Model = Callable[[Log], AssistantMessage]
Tools = Callable[[str, dict[str, Any]], Any]
STEPS_MAX = 40


def request(log: Log) -> ModelRequest:
    """The next request as far as the offline model reads one."""
    messages = log.job.conversation.messages
    schema = log.job.routing.config.answer_schema if log.job.routing.config else None
    return ModelRequest(PRIMARY, "", messages, TOOLS, 100, "a", output_schema=schema)


def offline(log: Log) -> AssistantMessage:
    return respond(request(log))


def scripted(tasks: Sequence[dict[str, Any]], answer: str) -> Model:
    """A model that calls the tools in their order and ends with an answer."""

    def model(log: Log) -> AssistantMessage:
        called = {one.tool for one in log.job.tools.recorded}
        arguments: dict[str, Any] = {
            "semantic_search": {"query": "q"},
            "get_document_context": {"document_id": "d"},
            "detect_dependencies": {"tasks": tasks},
            "query_task_graph": {"names": [task["name"] for task in tasks]},
            "cluster_by_similarity": {"tasks": tasks},
        }
        for tool in TASK_TOOLS:
            if tool not in called:
                return AssistantMessage(tool_calls=(ToolCall(call="1", tool=tool, arguments=arguments[tool]),))
        return AssistantMessage(text=answer)

    return model


def library(tool: str, arguments: dict[str, Any]) -> Any:
    """What the tools return of tasks; no document is there, and no earlier plan."""
    tasks = [
        Task(one.get("id") or str(n), one["name"], one.get("text", ""), tuple(one.get("depends_on", ())))
        for n, one in enumerate(arguments.get("tasks", ()), 1)
    ]
    named = [{"id": one.id, "name": one.name} for one in tasks]
    if tool == "detect_dependencies":
        found = detect_dependencies(tasks).dependencies
        edges = [{f: getattr(one, f) for f in ("task", "needs", "weight", "kind", "quote")} for one in found]
        return {"tasks": named, "dependencies": edges}
    if tool == "cluster_by_similarity":
        groups = cluster_by_similarity(word_vectors([one.name for one in tasks]), similarity_min=0.2)
        return {"tasks": named, "clusters": [{"label": "l", "tasks": [named[at]["id"] for at in g]} for g in groups]}
    return {"passages": []} if tool == "semantic_search" else {"tasks": [], "dependencies": []}


def played(log: Log, model: Model = offline, tools: Tools = library, *, taints: bool = False) -> Action | None:
    """Take a job to its end, and return the action that ends it."""
    while True:
        action = log.next
        step = log.job.model.step
        if isinstance(action, CallModel) and step < STEPS_MAX:
            log.ask(action.step, action.attempt, tools=TOOLS if action.step == 1 else None)
            said = model(log)
            log.answer(said.text)
            log.events[-1] = log.events[-1].model_copy(update={"message": said})
        elif isinstance(action, Correct):
            log.say(e.ContextInjected, note={"label": "CORRECTION", "text": action.text}, about=action.about)
        elif isinstance(action, RunTools):
            for call in action.calls:
                named = {"step": step, "call": call.wanted.call, "tool": call.meant.tool}
                log.say(e.ToolRequested, **named, arguments=call.meant.arguments, effect=Effect.READ, key=f"k{step}")
                log.say(e.ToolCompleted, **named, status="success", **_content(call.meant, tools, taints=taints))
        else:
            return action


def _content(call: ToolCall, tools: Tools, *, taints: bool) -> dict[str, Any]:
    text = json.dumps(tools(call.tool, call.arguments))
    return {"content": framed(call.tool, text), "words": "strangers"} if taints else {"content": text}


__all__ = ["PLANNER", "ToolMessage", "UserMessage", "library", "offline", "played", "request", "scripted"]
