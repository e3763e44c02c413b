"""The rules of a route, one after another: each may move the choice to another slot, and says why. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from wayline.contracts.errors import Reject
from wayline.contracts.jobs import Complexity
from wayline.contracts.models import Slot
from wayline.contracts.money import dollars
from wayline.routing.escalation import FALLING, RISING, after
from wayline.routing.estimate import Shape, expected, first_call
from wayline.routing.policy import SLOT_OF, TIER_OF, task_name
from wayline.routing.routing_input import RoutingInput
from wayline.routing.slots import SLOTS, Slots

DEFAULT_CAP = "the default, WAYLINE_ROUTER_JOB_BUDGET_USD"
SHOWN_USD = Decimal("0.0001")
"""How exactly a reason says what something would cost."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A slot, and why it is the right one so far: a clause that each rule may go on with."""

    slot: Slot
    why: str

    def moved(self, slot: Slot, because: str) -> Choice:
        """Return the same choice, in another slot for this reason."""
        return Choice(slot, f"{self.why}, but {because}")


def by_task(inputs: RoutingInput, complexity: Complexity, slots: Slots) -> Choice:
    """Choose the tier of the type of task; complexity moves it where the policy says so and the slot has a model."""
    policy, task = inputs.policy, inputs.task_type
    tier = policy.tier_of(task) if task else None
    if task and tier:
        name = task_name(task).replace("_", " ")
        known = f"it was classified as {name}, which" if inputs.classified else name
        choice = Choice(SLOT_OF[tier], f"{known} is {tier} work")
    elif task:
        # It has a name, though not one of ours: that says more than how its words look.
        return Choice(SLOT_OF[policy.unknown], f"{task!r} is no type of task that the policy knows")
    else:
        choice = Choice(SLOT_OF[policy.unknown], "nobody has said what type of task it is")
    slot = policy.moves.get(tier or "unknown", {}).get(complexity.level, choice.slot)
    # The name of a task says more about it than its words do, unless they are very clear.
    content = complexity.score if complexity.content is None else complexity.content
    if slot == choice.slot or slot not in slots.models or (tier and content < policy.sure):
        return choice
    measured = f"content {content:.2f}" if complexity.level == "complex" else f"score {complexity.score:.2f}"
    return choice.moved(slot, f"it looks {complexity.level} ({measured})")


def by_ability(choice: Choice, inputs: RoutingInput, slots: Slots) -> Choice:
    """Keep the slot's own model, else another of its tier, else the next slot up that can take the job, or down."""
    missed = slots.away.get(choice.slot)
    because = f"{missed.model} {missed.why}" if missed else f"the {choice.slot} slot has no model for {inputs.needs}"
    if choice.slot in slots.models and not slots.shut(choice.slot):
        return choice.moved(choice.slot, because) if missed else choice
    if choice.slot not in slots.models and choice.slot not in slots.unfit:
        raise empty(choice.slot)
    others = (*after(choice.slot, RISING), *after("reasoning", FALLING), "reasoning")
    able = next(iter(slots.of(others)), None)
    if able is None:
        raise unfit(inputs)
    return choice.moved(able, because)


def empty(slot: Slot) -> Reject:
    """Return the refusal where a slot has no model at all."""
    return Reject(
        f"no model of the tier {TIER_OF[slot]!r} can be reached: set the key of a provider that has one, add one with "
        f"PUT /v1/models, or name a model in the agent's routing.{slot}",
        code="empty_tier",
        status=422,
    )


def unfit(inputs: RoutingInput) -> Reject:
    """Return the refusal where no model can take the job."""
    return Reject(
        f"no model of this agent can take the job, which needs {inputs.needs}: name one that can in its routing",
        code="model_unfit",
        status=422,
    )


def by_reasoning(choice: Choice, inputs: RoutingInput, complexity: Complexity, slots: Slots) -> Choice:
    """Choose the reasoning slot, for work that needs it where the policy says so."""
    if not (inputs.policy.reasoning and complexity.needs_reasoning and "reasoning" in slots.models):
        return choice
    needs = f"it needs reasoning (score {complexity.score:.2f})"
    missed = slots.away.get("reasoning")
    if missed is None:
        return choice.moved("reasoning", needs)
    slot = choice.slot if slots.shut("reasoning") else "reasoning"
    return choice.moved(slot, f"{needs}, where {missed.model} {missed.why}")


def by_warm_cache(choice: Choice, inputs: RoutingInput, shape: Shape, slots: Slots) -> Choice:
    """Stay with the session's model where that costs less, and it stands no lower than the work asks for."""
    warm, card = inputs.warm, slots.models[choice.slot]
    if warm is None or card.name == warm.model:
        return choice
    above = slots.of(after(choice.slot, SLOTS))
    stay: Slot | None = next((slot for slot in above if slots.models[slot].name == warm.model), None)
    if stay is None:
        return choice
    cached = inputs.cached_tokens(slots.models[stay])
    leaving = expected(card, shape, slot=choice.slot)
    staying = expected(slots.models[stay], shape, slot=stay, cached_tokens=cached)
    if leaving is None or staying is None or leaving <= staying:
        return choice
    kept = f"{cached} tokens are warm in the cache of {warm.model}"
    return choice.moved(stay, f"{kept}, which makes staying {shown(leaving - staying)} cheaper")


def by_budget(choice: Choice, inputs: RoutingInput, shape: Shape, slots: Slots) -> Choice:
    """Choose the next slot down that the budget can pay; where none can, the cheapest one goes on until the cap."""
    left = inputs.spendable_usd
    if left is None or not inputs.config.routing.budget_aware:
        return choice
    down = slots.of((choice.slot, *after(choice.slot, FALLING)))
    needs: dict[Slot, _Need] = {slot: need for slot in down if (need := _need(inputs, shape, slots, slot)) is not None}
    if choice.slot not in needs and not inputs.priced_only:
        return choice
    payable: list[Slot] = [slot for slot in needs if needs[slot].usd <= left]
    cheapest: list[Slot] = sorted(needs, key=lambda slot: needs[slot].usd)
    fit = (payable or cheapest or down)[0]
    if fit == choice.slot:
        return choice
    need = needs.get(choice.slot)
    why = need.why if need else f"nobody knows what the {choice.slot} slot costs"
    return choice.moved(fit, f"{why} and {_limit(inputs, left)}")


@dataclass(frozen=True, slots=True)
class _Need:
    """What must be left for a job to begin in a slot, and why so much."""

    usd: Decimal
    why: str


def _need(inputs: RoutingInput, shape: Shape, slots: Slots, slot: Slot) -> _Need | None:
    """Price the first call, or the whole job where that is dearer and recent jobs of the agent have shown it.

    A whole job that is only guessed keeps nobody out: when money runs out on the way, the executor goes on with the
    next slot down whose call can be paid.
    """
    card = slots.models[slot]
    call = first_call(card, shape, slot=slot)
    whole = expected(card, shape, slot=slot, cached_tokens=inputs.cached_tokens(card))
    if call is None or whole is None:
        return None
    observed = shape.observed_on(card, slot)
    if observed is None or call >= whole:
        return _Need(call, f"one call in the {slot} slot can cost {shown(call)}")
    as_before = f"as the agent's last {observed.jobs} jobs there"
    return _Need(whole, f"the work would cost about {shown(whole)} in the {slot} slot, {as_before},")


def _limit(inputs: RoutingInput, left: Decimal) -> str:
    """Return what may be spent, and the name of the setting that says so."""
    if inputs.job.options.budget_usd is not None and inputs.job.options.budget_usd <= left:
        return f"the job may spend {dollars(left)} (its own options.budget_usd)"
    if inputs.left_usd is not None and inputs.left_usd <= left:
        return f"the budgets leave {dollars(left)}"
    return f"the job may spend {dollars(left)} ({DEFAULT_CAP}; options.budget_usd sets another)"


def shown(usd: Decimal) -> str:
    """Return an estimate as a reason says it: its last digits mean nothing."""
    return dollars(usd.quantize(SHOWN_USD, rounding=ROUND_UP) if usd > SHOWN_USD else usd)
