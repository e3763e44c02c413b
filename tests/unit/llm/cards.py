"""Models and requests for the adapters' tests."""

from __future__ import annotations

from typing import Any

from wayline.contracts.chat import AssistantMessage, NoteMessage, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.models import CacheRules, ModelCard
from wayline.contracts.tools import ToolDefinition
from wayline.llm import ModelRequest

LOOK = ToolDefinition(name="look", description="Look.", input_schema={"type": "object", "properties": {"at": {}}})
ASK = ToolDefinition(name="ask", description="Ask.")
MARKS = CacheRules(kind="breakpoints", min_tokens=512, breakpoints_max=4, lookback_blocks=20)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def card(**more: Any) -> ModelCard:
    return ModelCard(**{"provider": "anthropic", "model": "claude", "tier": "standard", **more})


def user(text: str) -> UserMessage:
    return UserMessage(parts=(TextPart(text=text),))


def note(text: str) -> NoteMessage:
    return NoteMessage(label="CONTEXT", text=text)


def calling(*wire_ids: str | None, text: str = "", **more: Any) -> AssistantMessage:
    calls = tuple(
        ToolCall(call=str(n), tool="look", arguments={"at": n}, provider_id=wire_id)
        for n, wire_id in enumerate(wire_ids, 1)
    )
    return AssistantMessage(text=text, tool_calls=calls, **more)


def result(call: str, content: str, **more: Any) -> ToolMessage:
    return ToolMessage(call=call, tool="look", content=content, **more)


def request(*messages: Any, model: ModelCard, **more: Any) -> ModelRequest:
    given = {"system": "be brief", "tools": (), "max_output_tokens": 5_000, "attempt_id": "acme/j1/1/m1"}
    return ModelRequest(card=model, messages=messages, **{**given, **more})
