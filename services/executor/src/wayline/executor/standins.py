"""Places held for `wayline.llm.json_protocol`, `wayline.llm.structured` and `wayline.llm.prices.worst`."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import orjson

from wayline.contracts.chat import AssistantMessage
from wayline.contracts.models import ModelCard
from wayline.contracts.money import usd
from wayline.contracts.tools import ToolDefinition


def needs_correction(message: AssistantMessage, tools: Sequence[ToolDefinition]) -> str | None:
    """What to tell a model whose envelope could not be read."""
    broken = message.read_as == "text" and bool(tools) and message.text.lstrip().startswith("{")
    return "Your last message was not a readable envelope." if broken else None


def problem(schema: dict[str, Any], text: str) -> str | None:
    """What is wrong with a structured answer."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return "it is not JSON"
    missing = [name for name in schema.get("required", ()) if name not in value]
    return f"{missing[0]!r} is missing" if missing else None


def worst(card: ModelCard, input_tokens: int, max_output_tokens: int) -> Decimal | None:
    """The most a call can cost."""
    if card.prices is None:
        return None
    rates = [card.prices.rates, *(step.rates for step in card.prices.above)]
    read = max(
        rate for r in rates for rate in (r.input, r.cache_read, r.cache_write_5m, r.cache_write_1h) if rate is not None
    )
    written = max(r.output for r in rates)
    return usd((read * input_tokens + written * max_output_tokens) / 1_000_000)
