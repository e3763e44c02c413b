"""Names that receivers of spans read beside the conventions': what a call cost, whose session it was, what was used.

They are added to what is forwarded, and to nothing that is stored. A span carries no words of a conversation, so there
are none to name. OpenInference is Phoenix's; names of Langfuse and MLflow come before all others there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import orjson

from wayline.telemetry import names

Dialect = Literal["openinference", "langfuse", "mlflow"]
Attributes = Mapping[str, Any]


class Called(NamedTuple):
    """What a span says that dialects have names for."""

    kind: Literal["agent", "model", "tool", "step"]
    model: str | None
    tool: str | None
    session: str | None
    user: str | None
    tokens: dict[str, int] | None
    """`input` and `output` in all, and of these `cache_read`, `cache_write` and `reasoning`."""
    cost_usd: float | None


def add_dialects(attributes: Attributes, dialects: tuple[Dialect, ...], *, cost_usd: Decimal | None) -> dict[str, Any]:
    """Return a span's attributes with the names of some dialects beside them."""
    if not dialects:
        return dict(attributes)
    called = _called(attributes, cost_usd)
    added = {name: value for dialect in dialects for name, value in SAID[dialect](called) if value is not None}
    return {**added, **attributes}


def _called(attributes: Attributes, cost_usd: Decimal | None) -> Called:
    tool, model = attributes.get(names.GEN_AI_TOOL_NAME), attributes.get(names.GEN_AI_REQUEST_MODEL)
    operation = attributes.get(names.GEN_AI_OPERATION)
    tokens = None
    if names.GEN_AI_INPUT_TOKENS in attributes:
        tokens = {
            "input": attributes[names.GEN_AI_INPUT_TOKENS],
            "output": attributes.get(names.GEN_AI_OUTPUT_TOKENS, 0),
            "cache_read": attributes.get(names.GEN_AI_CACHE_READ, 0),
            "cache_write": attributes.get(names.GEN_AI_CACHE_WRITE, 0),
            "reasoning": attributes.get(names.GEN_AI_REASONING, 0),
        }
    kind = "agent" if operation == "invoke_agent" else "tool" if tool else "model" if model else "step"
    session, user = attributes.get(names.SESSION), attributes.get(names.USER)
    return Called(kind, model, tool, session, user, tokens, None if cost_usd is None else float(cost_usd))


def _openinference(called: Called) -> Iterator[tuple[str, Any]]:
    yield "openinference.span.kind", {"agent": "AGENT", "model": "LLM", "tool": "TOOL", "step": "CHAIN"}[called.kind]
    yield "llm.model_name", called.model if called.kind == "model" else None
    yield "tool.name", called.tool
    yield "llm.cost.total", called.cost_usd if called.kind == "model" else None
    if called.tokens:
        # A total without its parts is taken for uncached.
        yield "llm.token_count.prompt", called.tokens["input"]
        yield "llm.token_count.prompt_details.cache_read", called.tokens["cache_read"]
        yield "llm.token_count.prompt_details.cache_write", called.tokens["cache_write"]
        yield "llm.token_count.completion", called.tokens["output"]
        yield "llm.token_count.completion_details.reasoning", called.tokens["reasoning"]
        yield "llm.token_count.total", called.tokens["input"] + called.tokens["output"]


def _langfuse(called: Called) -> Iterator[tuple[str, Any]]:
    kinds = {"agent": "agent", "model": "generation", "tool": "tool", "step": "span"}
    yield "langfuse.observation.type", kinds[called.kind]
    yield "langfuse.session.id", called.session
    yield "langfuse.user.id", called.user
    yield "langfuse.observation.model.name", called.model if called.kind == "model" else None
    if called.cost_usd is not None:
        yield "langfuse.observation.cost_details", orjson.dumps({"total": called.cost_usd}).decode()
    if tokens := called.tokens:
        # It adds up what it is given, so each token is in one kind.
        counts = {
            "input": tokens["input"] - tokens["cache_read"] - tokens["cache_write"],
            "cache_read_input_tokens": tokens["cache_read"],
            "cache_creation_input_tokens": tokens["cache_write"],
            "output": tokens["output"] - tokens["reasoning"],
            "output_reasoning_tokens": tokens["reasoning"],
            "total": tokens["input"] + tokens["output"],
        }
        yield "langfuse.observation.usage_details", orjson.dumps(counts).decode()


def _mlflow(called: Called) -> Iterator[tuple[str, Any]]:
    yield "mlflow.spanType", {"agent": "AGENT", "model": "CHAT_MODEL", "tool": "TOOL", "step": "CHAIN"}[called.kind]
    yield "mlflow.trace.session", called.session
    yield "mlflow.trace.user", called.user
    yield "mlflow.llm.model", called.model if called.kind == "model" else None
    if called.cost_usd is not None:
        # An object, not text: it adds up `total_cost` over a trace.
        yield "mlflow.llm.cost", {"total_cost": called.cost_usd}
    if tokens := called.tokens:
        yield (
            "mlflow.chat.tokenUsage",
            {
                "input_tokens": tokens["input"],
                "output_tokens": tokens["output"],
                "total_tokens": tokens["input"] + tokens["output"],
                "cache_read_input_tokens": tokens["cache_read"],
                "cache_creation_input_tokens": tokens["cache_write"],
            },
        )


SAID: dict[Dialect, Callable[[Called], Iterator[tuple[str, Any]]]] = {
    "openinference": _openinference,
    "langfuse": _langfuse,
    "mlflow": _mlflow,
}
