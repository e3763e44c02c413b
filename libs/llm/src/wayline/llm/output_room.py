"""How much room a call gets for its output: what it wants, within what its job may still spend.

The router decides by it whether a job can begin in a slot, and the executor makes each call by it: both say the same.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from wayline.contracts.events import Observed
from wayline.contracts.models import Effort, ModelCard, Slot
from wayline.llm.prices import affordable_output
from wayline.llm.thinking import output_max, thinking_room

ANSWER_TOKENS_MIN = 600
"""The least room for an answer where nothing has been observed: about 450 words."""
THINKING_TOKENS_MIN = 600
"""The least room for thinking beside it, where there is any."""
MARGIN = 1.25
"""By how much the next call of a job may be longer than its longest one."""


ASIDE_THINKING_TOKENS = 1_024
"""What a model that cannot be kept from thinking first may think in a call beside the conversation."""
LABEL_TOKENS = 32
"""The answer of a classification: one name of a type of task."""


def room_aside(card: ModelCard, answer_tokens: int) -> int:
    """Return the room for output of a call beside the conversation, with what its model may think first."""
    thinks = ASIDE_THINKING_TOKENS if card.reasoning in ("adaptive", "effort") else 0
    return min(answer_tokens + thinks, card.output_limit)


def room_needed(
    card: ModelCard,
    slot: Slot,
    answer_tokens: int,
    *,
    effort: Effort | None = None,
    observed: Observed | None = None,
    longest_tokens: int = 0,
    exact: bool = False,
) -> int:
    """Return the least room for output with which a call is worth making.

    `effort` is the agent's own word. `observed` is what the agent's recent jobs needed, `longest_tokens` the longest
    call of this job. `exact`: the job itself asks for an answer of up to `answer_tokens`, and is to have that room.
    """
    wanted = output_max(card, slot, answer_tokens, effort=effort)
    thinks = min(THINKING_TOKENS_MIN, thinking_room(card, slot, effort))
    needed = ANSWER_TOKENS_MIN + thinks if observed is None else max(ANSWER_TOKENS_MIN, observed.longest_tokens)
    if exact:
        needed = max(needed, answer_tokens + thinks)
    return min(max(needed, int(longest_tokens * MARGIN)), wanted)


def room_within(
    card: ModelCard,
    prompt_tokens: int,
    *,
    wanted: int,
    needed: int,
    usd_max: Decimal | None,
    at: datetime | None = None,
) -> int:
    """Return the room that a call gets where it may cost `usd_max`: all that it wants, else what that pays.

    `prompt_tokens` is the most that its prompt can have. It is never less than the call needs: where that cannot be
    paid, the call is refused its money, and not cut short.
    """
    paid = None if usd_max is None else affordable_output(card, prompt_tokens, usd_max, at=at)
    return wanted if paid is None else max(needed, min(wanted, paid))
