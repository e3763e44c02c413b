"""What a recorded exchange says, read from its bytes with no help from the code under test, and what we made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wayline.contracts.chat import TextPart, UserMessage
from wayline.contracts.models import ModelCard
from wayline.llm import Finished, ModelRequest

from ..recordings import Recording

_ASKED = UserMessage(parts=(TextPart(text="hi"),))


@dataclass
class Expected:
    """A reply in terms that can be compared."""

    text: str
    calls: list[tuple[str, Any]]
    stop: str
    tokens: dict[str, int] | None
    """None: what the wire counts is nothing, though something was read and written."""


def comparable(finished: Finished) -> Expected:
    """Return what our adapter made of a reply, in terms that can be compared."""
    used = finished.usage
    return Expected(
        text=finished.message.text,
        calls=[(call.tool, call.arguments) for call in finished.message.tool_calls],
        stop=finished.stop_reason,
        tokens=used
        and {
            "input": used.input,
            "output": used.output,
            "cache_read": used.cache_read,
            "cache_write": used.cache_write_5m + used.cache_write_1h,
            "reasoning": used.reasoning,
        },
    )


def request(card: ModelCard, recorded: Recording) -> ModelRequest:
    """A request that is answered with a recording: its name is the attempt's id."""
    return ModelRequest(card, "", (_ASKED,), (), 100, recorded.name)
