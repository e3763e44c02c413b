"""Who goes on with a job when its model is too weak, cannot be reached, or costs more than is left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from decimal import ROUND_UP, Decimal
from typing import Literal

from wayline.contracts.events import Candidates
from wayline.contracts.jobs import Route
from wayline.contracts.models import ModelCard, Slot
from wayline.contracts.money import Usage
from wayline.llm.prices import cost

Cause = Literal["escalation", "fallback", "budget"]

RISING: tuple[Slot, ...] = ("fast", "primary", "escalation")
"""A weak job rises along the slots. What a model costs says nothing about what it can do."""
FALLING: tuple[Slot, ...] = ("reasoning", "escalation", "primary", "fast")
SHOWN_USD = Decimal("0.0001")
"""How exactly a reason says what something costs."""


def next_route(
    candidates: Candidates,
    route: Route,
    cause: Cause,
    *,
    why: str,
    avoid: Collection[str] = (),
    prompt_tokens: int = 0,
    warm_tokens: int = 0,
    payable: Callable[[ModelCard, Slot], bool] | None = None,
) -> Route | None:
    """Return the route that replaces this one; None when nobody is left. What was predicted for the job stays.

    `why` is a clause, and becomes the first half of the reason. `avoid` are models, as `provider/model`, that are known
    not to answer. `prompt_tokens` is how long the prompt is now: models with a smaller window are passed over.
    `warm_tokens` of it are in the present model's cache: the next one reads them anew, and the reason says for how
    much. `payable` says whether the next call fits what is left, the whole prompt read anew. Only where money runs out
    is there a choice between several: who rises or falls back takes the next in turn, whatever it costs.
    """
    for slot, name in _in_turn(candidates, route, cause):
        card = candidates.card(name)
        if card is None or name == route.name or name in avoid or card.context_window <= prompt_tokens:
            continue
        if payable is not None and not payable(card, slot):
            continue
        how = f"falls back to {name}" if cause == "fallback" else f"goes on in the {slot} slot with {name}"
        how += _reading_anew(card, warm_tokens)
        decided = {"provider": card.provider, "model": card.model, "tier": card.tier, "slot": slot}
        return route.model_copy(update=decided | {"reason": f"{why}, so the job {how}"})
    return None


def _reading_anew(card: ModelCard, tokens: int) -> str:
    """Return what it costs to leave a warm cache, as the end of a reason."""
    if not tokens:
        return ""
    written = tokens if card.cache.kind == "breakpoints" and tokens >= card.cache.min_tokens else 0
    usd = cost(card, Usage(input=tokens, cache_write_5m=written))
    price = "an unknown price" if usd is None else f"${usd.quantize(SHOWN_USD, rounding=ROUND_UP).normalize():f}"
    return f", which reads {tokens} warm tokens anew for {price}"


def _in_turn(candidates: Candidates, route: Route, cause: Cause) -> Iterator[tuple[Slot, str]]:
    if cause == "fallback":
        chain = candidates.fallbacks
        # A job that already fell back goes on along the chain, never back to its beginning.
        passed = chain.index(route.name) + 1 if route.name in chain else 0
        return ((route.slot, name) for name in chain[passed:])
    order = RISING if cause == "escalation" else FALLING
    return ((slot, candidates.slots[slot]) for slot in after(route.slot, order) if slot in candidates.slots)


def after(slot: Slot, order: Sequence[Slot]) -> Sequence[Slot]:
    """Return the slots of an order that come after one of them; none for a slot that has no place in it."""
    return order[order.index(slot) + 1 :] if slot in order else ()
