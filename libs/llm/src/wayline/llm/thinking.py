"""How much a model may think: the same for whoever predicts a call's cost, holds money for it, or makes it."""

from __future__ import annotations

from wayline.contracts.models import Effort, ModelCard, Slot

REASONING_EFFORT: Effort = "high"
"""Of the reasoning slot, unless the agent says another."""
REASONING_TOKENS = 10_000
"""What the reasoning slot may think, where a model takes a number."""


def thinking_budget(card: ModelCard, slot: Slot) -> int:
    """Tokens of thinking that a call in this slot asks for; 0 where it names no number."""
    return REASONING_TOKENS if slot == "reasoning" and card.reasoning == "budget" else 0


def output_max(card: ModelCard, slot: Slot, answer_tokens: int) -> int:
    """The most that a call can write: thinking is part of the output, and is not taken from the answer."""
    return min(answer_tokens + thinking_budget(card, slot), card.output_limit)
