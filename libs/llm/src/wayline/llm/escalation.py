"""Who goes on with a job when its model is too weak, cannot be reached, or costs more than is left."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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
CALL = Usage(input=8_000, output=1_000)
"""A usual call, to tell which of two models is cheaper where nobody says how long the prompt is."""


def next_route(
    candidates: Candidates,
    route: Route,
    cause: Cause,
    *,
    why: str,
    avoid: Collection[str] = (),
    prompt_tokens: int = 0,
) -> Route | None:
    """The route that replaces this one; None when nobody is left. What was predicted for the job stays.

    `why` is a clause, and becomes the first half of the reason. `avoid` are models, as `provider/model`, that are known
    not to answer. `prompt_tokens` is how long the prompt is now: models with a smaller window are passed over.
    """
    for slot, name in _in_turn(candidates, route, cause):
        card = candidates.card(name)
        if card is None or name == route.name or name in avoid or card.context_window <= prompt_tokens:
            continue
        if cause == "budget" and not _cheaper(card, candidates.card(route.name), prompt_tokens):
            continue
        how = f"falls back to {name}" if cause == "fallback" else f"goes on in the {slot} slot with {name}"
        decided = {"provider": card.provider, "model": card.model, "tier": card.tier, "slot": slot}
        return route.model_copy(update=decided | {"reason": f"{why}, so the job {how}"})
    return None


def _in_turn(candidates: Candidates, route: Route, cause: Cause) -> Iterator[tuple[Slot, str]]:
    if cause == "fallback":
        chain = candidates.fallbacks
        # A job that already fell back goes on along the chain, never back to its beginning.
        passed = chain.index(route.name) + 1 if route.name in chain else 0
        return ((route.slot, name) for name in chain[passed:])
    order = RISING if cause == "escalation" else FALLING
    return ((slot, candidates.slots[slot]) for slot in after(route.slot, order) if slot in candidates.slots)


def after(slot: Slot, order: Sequence[Slot]) -> Sequence[Slot]:
    """The slots of an order that come after one of them; none for a slot that has no place in it."""
    return order[order.index(slot) + 1 :] if slot in order else ()


def _cheaper(card: ModelCard, than: ModelCard | None, prompt_tokens: int) -> bool:
    """Whether a call costs less for sure: a price that nobody knows is never the cheaper one."""
    usage = CALL.model_copy(update={"input": prompt_tokens}) if prompt_tokens else CALL
    ours, theirs = cost(card, usage), than and cost(than, usage)
    return ours is not None and (theirs is None or ours < theirs)
