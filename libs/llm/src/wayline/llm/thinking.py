"""How much a model may think: the same for routing, for the budget and for the call itself."""

from __future__ import annotations

from collections.abc import Mapping

from wayline.contracts.models import Effort, ModelCard, Slot

REASONING_EFFORT: Effort = "high"
"""Of the reasoning slot, unless the agent says another."""
REASONING_TOKENS = 10_000
"""What the reasoning slot may think, where a model takes a number."""
ROOM_TOKENS: Mapping[Effort, int] = {
    "none": 0,
    "minimal": 0,
    "low": 1_024,
    "medium": 4_096,
    "high": REASONING_TOKENS,
    "xhigh": 2 * REASONING_TOKENS,
    "max": 3 * REASONING_TOKENS,
}
"""The room for thinking beside the answer, by effort: models that decide by themselves are told no number."""


def thinking_budget(card: ModelCard, slot: Slot) -> int:
    """Return the thinking tokens that a call in this slot asks for; 0 where it names no number."""
    return REASONING_TOKENS if slot == "reasoning" and card.reasoning == "budget" else 0


def thinking_room(card: ModelCard, slot: Slot, effort: Effort | None = None) -> int:
    """Return how many tokens of output are for thinking; `effort` is the agent's own word, None where it has none.

    0 where nobody asks for thought: a model that thinks all the same takes it from the answer's room.
    """
    if card.reasoning in ("none", "budget"):
        return thinking_budget(card, slot)
    asked = effort or (REASONING_EFFORT if slot == "reasoning" else None)
    return ROOM_TOKENS[asked] if asked else 0


def output_max(card: ModelCard, slot: Slot, answer_tokens: int, *, effort: Effort | None = None) -> int:
    """Return the most that a call can write: thinking counts as output, and is not taken from the answer."""
    return min(answer_tokens + thinking_room(card, slot, effort), card.output_limit)
