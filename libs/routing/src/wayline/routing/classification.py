"""What a job without a type of task may ask a flash model before its first call, and what its answer would change.

The router calls nobody: it decides beforehand what each answer means, by the same rules as for a job that names its
type, and pins that in the job's first record. So no later change of policy reaches a job that is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from wayline.contracts.errors import Reject
from wayline.contracts.jobs import Route
from wayline.contracts.models import ModelCard
from wayline.contracts.money import Usage, usd
from wayline.llm.output_room import LABEL_TOKENS, room_aside
from wayline.llm.prices import LOCAL, cost, worst
from wayline.llm.tokens import estimate, most
from wayline.routing.decision import Decision
from wayline.routing.routing_input import RoutingInput
from wayline.routing.slots import Slots

INSTRUCTION_TOKENS = 250
"""About what the question and the names of the types take."""
TEXT_TOKENS_MAX = 1_000
"""About what is shown of a job's text; the rest is left out."""
PIECES = 2
"""Messages of the question: the instruction and the text."""
SAID_TOKENS = 10
"""What an answer has, of the room that it gets."""

Tasks = dict[str, Route | None]


@dataclass(frozen=True, slots=True)
class Question:
    """Who is asked, and the route of each answer; None: it stays as it is."""

    card: ModelCard
    tasks: Tasks


def classifier_of(
    slots: Slots, cards: Sequence[ModelCard], *, away: Mapping[str, str] | None = None
) -> ModelCard | None:
    """Return the flash model to ask: of the agent's fast slot, else the first of the catalogue; nobody who is away."""
    fast = slots.models.get("fast")
    several = (fast, *cards) if fast else cards
    able = (card for card in several if card.tier == "flash" and card.provider not in LOCAL)
    return next((card for card in able if card.name not in (away or {})), None)


def question(
    inputs: RoutingInput, base: Decision, card: ModelCard | None, decide: Callable[[str], Decision]
) -> Question | None:
    """Return what to ask, where nobody has said the type; None where no answer would change anything.

    `decide` as for a job that names its type. It raises Reject where such a job would be refused.
    """
    if card is None or not inputs.config.classify or inputs.task_type or not inputs.text.strip():
        return None
    if card.prices is None and base.route.estimated_cost_usd is not None:
        # Money is held for the job, and nobody could say how much for this.
        return None
    if not _fits(inputs, card, base):
        return None
    tasks = {label: _otherwise(inputs, card, base.route, label, decide) for label in sorted(inputs.policy.tiers)}
    priced = {label: one and _priced(inputs, card, one) for label, one in tasks.items()}
    return Question(card, priced) if any(priced.values()) else None


def _fits(inputs: RoutingInput, card: ModelCard, decision: Decision) -> bool:
    """Check that what is left pays the question and then the first call: no job comes to its cap because it asked."""
    left, first, least = inputs.spendable_usd, decision.first_call_usd, decision.least_call_usd
    aside, own = _most(inputs, card), inputs.own_usd
    if left is None or first is None or least is None or aside is None:
        return True
    # What the question takes of the job's own cap is room that the first call goes without.
    call = first if own is None else max(least, min(first, own - aside))
    return call + aside <= left


def _otherwise(
    inputs: RoutingInput, card: ModelCard, base: Route, label: str, decide: Callable[[str], Decision]
) -> Route | None:
    """Return the route of a type of task, where it is another one that the job can go."""
    try:
        decision = decide(label)
    except Reject:
        return None
    found = decision.route
    unpriced = found.estimated_cost_usd is None and base.estimated_cost_usd is not None
    return None if found.name == base.name or unpriced or not _fits(inputs, card, decision) else found


def with_question(inputs: RoutingInput, base: Route, question: Question) -> Route:
    """Return the route until the answer is there; its prediction holds whatever is answered."""
    ranges = [route.estimated_cost_range_usd for route in question.tasks.values() if route is not None]
    priced = _priced(inputs, question.card, base)
    span = _over([priced.estimated_cost_range_usd, *ranges])
    return priced.model_copy(update={"classifier": question.card.name, "estimated_cost_range_usd": span})


def _over(ranges: Iterable[tuple[Decimal, Decimal] | None]) -> tuple[Decimal, Decimal] | None:
    """Return the least and the most of several; None: a price is unknown."""
    known = [*ranges]
    if None in known:
        return None
    leasts, mosts = zip(*(each for each in known if each is not None), strict=True)
    return min(leasts), max(mosts)


def _priced(inputs: RoutingInput, card: ModelCard, route: Route) -> Route:
    """Return a route whose prediction counts the question."""
    expected = _plus(route.estimated_cost_usd, cost(card, Usage(input=_tokens(inputs), output=SAID_TOKENS)))
    span = route.estimated_cost_range_usd
    dearest = _plus(span[1] if span else None, _most(inputs, card))
    if span is None or dearest is None:
        return route.model_copy(update={"estimated_cost_usd": expected, "estimated_cost_range_usd": None})
    cap = inputs.own_usd
    # The job keeps to its cap with the question as without it.
    dearest = dearest if cap is None else max(span[0], min(dearest, cap))
    return route.model_copy(update={"estimated_cost_usd": expected, "estimated_cost_range_usd": (span[0], dearest)})


def _most(inputs: RoutingInput, card: ModelCard) -> Decimal | None:
    """Return the most that the question can cost."""
    return worst(card, most(_tokens(inputs), pieces=PIECES), room_aside(card, LABEL_TOKENS))


def _tokens(inputs: RoutingInput) -> int:
    return INSTRUCTION_TOKENS + min(estimate(inputs.text), TEXT_TOKENS_MAX)


def _plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else usd(one + other)
