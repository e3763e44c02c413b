"""The rules of a route, one after another: each may move the choice to another slot, and says why. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import TextPart
from wayline.contracts.errors import Reject
from wayline.contracts.events import Warm
from wayline.contracts.jobs import Complexity, SubmitJob
from wayline.contracts.models import ModelCard, Slot
from wayline.llm.escalation import FALLING, RISING, after
from wayline.router.estimate import Level, Shape, expected, shape_of, worst_call
from wayline.router.policy import SLOT_OF, TIER_OF, Policy, task_name
from wayline.router.slots import SLOTS, Needs, Slots, needs_of


@dataclass(frozen=True, slots=True)
class Asked:
    """All that a decision rests on beside the models."""

    job: SubmitJob
    config: AgentConfig
    policy: Policy
    left_usd: Decimal | None = None
    """What the budgets that somebody has set leave."""
    cap_usd: Decimal | None = None
    """What any job may cost."""
    warm: Warm | None = None
    classified: str | None = None
    """The type of task as a model takes it, where neither the job nor its agent says one."""

    @property
    def own_usd(self) -> Decimal | None:
        """What the job may cost."""
        return _least(self.job.options.budget_usd, self.cap_usd)

    @property
    def spendable_usd(self) -> Decimal | None:
        """What is left of the tightest budget, the job's own among them."""
        return _least(self.left_usd, self.own_usd)

    @property
    def priced_only(self) -> bool:
        """Whether somebody has set a limit that a model of unknown price cannot keep."""
        return self.left_usd is not None or self.job.options.budget_usd is not None

    @property
    def needs(self) -> Needs:
        return needs_of(self.job, self.config, kept_tokens=self.kept_tokens)

    @property
    def kept_tokens(self) -> int:
        return self.warm.prefix_tokens if self.warm else 0

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.job.parts() if isinstance(part, TextPart))

    @property
    def task_type(self) -> str | None:
        return self.job.options.task_type or self.config.task_type or self.classified

    def shape(self, level: Level = "moderate") -> Shape:
        return shape_of(self.job, self.config, level=level, kept_tokens=self.kept_tokens, cap_usd=self.own_usd)

    def cached_tokens(self, card: ModelCard) -> int:
        """How much of the first prompt this model's provider still keeps."""
        return self.warm.prefix_tokens if self.warm and self.warm.model == card.name else 0


@dataclass(frozen=True, slots=True)
class Choice:
    """A slot, and why it is the right one so far: a clause that each rule may go on with."""

    slot: Slot
    why: str

    def moved(self, slot: Slot, because: str) -> Choice:
        return Choice(slot, f"{self.why}, but {because}")


def by_task(asked: Asked, complexity: Complexity, slots: Slots) -> Choice:
    """The tier of the type of task; complexity moves it where the policy says so and the slot has a model."""
    policy, said = asked.policy, asked.task_type
    tier = policy.tiers.get(task_name(said)) if said else None
    if said and tier:
        name = task_name(said).replace("_", " ")
        known = f"it was classified as {name}, which" if asked.classified else name
        choice = Choice(SLOT_OF[tier], f"{known} is {tier} work")
    elif said:
        choice = Choice(SLOT_OF[policy.unknown], f"{said!r} is no type of task that the policy knows")
    else:
        choice = Choice(SLOT_OF[policy.unknown], "nobody has said what type of task it is")
    slot = policy.moves.get(tier or "unknown", {}).get(complexity.level, choice.slot)
    # The name of a task says more about it than its words do, unless they are very clear.
    if slot == choice.slot or slot not in slots.models or (tier and complexity.score < policy.sure):
        return choice
    return choice.moved(slot, f"it looks {complexity.level} (score {complexity.score:.2f})")


def by_ability(choice: Choice, asked: Asked, slots: Slots) -> Choice:
    """The next slot up that can take the job, else the next one down."""
    if choice.slot in slots.models:
        return choice
    if choice.slot not in slots.unfit:
        raise empty(choice.slot)
    others = (*after(choice.slot, RISING), *after("reasoning", FALLING))
    able = next(iter(slots.of(others)), None)
    if able is None:
        raise unfit(asked)
    return choice.moved(able, f"the {choice.slot} slot has no model for {asked.needs}")


def empty(slot: Slot) -> Reject:
    return Reject(
        f"no model of the tier {TIER_OF[slot]!r} can be reached: set the key of a provider that has one, add one with "
        f"PUT /v1/models, or name a model in the agent's routing.{slot}",
        code="empty_tier",
        status=422,
    )


def unfit(asked: Asked) -> Reject:
    return Reject(
        f"no model of this agent can take the job, which needs {asked.needs}: name one that can in its routing",
        code="model_unfit",
        status=422,
    )


def by_reasoning(choice: Choice, asked: Asked, complexity: Complexity, slots: Slots) -> Choice:
    if not (asked.policy.reasoning and complexity.needs_reasoning and "reasoning" in slots.models):
        return choice
    return choice.moved("reasoning", f"it needs reasoning (score {complexity.score:.2f})")


def by_warm_cache(choice: Choice, asked: Asked, shape: Shape, slots: Slots) -> Choice:
    """Stay with the session's model where that costs less, and it stands no lower than the work asks for."""
    warm, card = asked.warm, slots.models[choice.slot]
    if warm is None or card.name == warm.model:
        return choice
    above = slots.of(after(choice.slot, SLOTS))
    stay: Slot | None = next((slot for slot in above if slots.models[slot].name == warm.model), None)
    leaving = expected(card, shape)
    staying = expected(slots.models[stay], shape, cached_tokens=warm.prefix_tokens) if stay else None
    if stay is None or leaving is None or staying is None or leaving <= staying:
        return choice
    kept = f"{warm.prefix_tokens} tokens are warm in the cache of {warm.model}"
    return choice.moved(stay, f"{kept}, which makes staying ${_plain(leaving - staying)} cheaper")


def by_budget(choice: Choice, asked: Asked, shape: Shape, slots: Slots) -> Choice:
    """The next slot down that the budget can pay; where none can, the cheapest one goes on until the cap."""
    left = asked.spendable_usd
    if left is None or not asked.config.routing.budget_aware:
        return choice
    down = slots.of((choice.slot, *after(choice.slot, FALLING)))
    costs: dict[Slot, Decimal] = {
        slot: usd for slot in down if (usd := _needed(asked, shape, slots.models[slot])) is not None
    }
    if choice.slot not in costs and not asked.priced_only:
        return choice
    payable: list[Slot] = [slot for slot in costs if costs[slot] <= left]
    cheapest: list[Slot] = sorted(costs, key=costs.__getitem__)
    fit = (payable or cheapest or down)[0]
    if fit == choice.slot:
        return choice
    return choice.moved(fit, f"the ${_plain(left)} that are left are too little for the {choice.slot} slot")


def _needed(asked: Asked, shape: Shape, card: ModelCard) -> Decimal | None:
    """What must be left for a model to begin: the whole job as expected, and its first call at its worst."""
    first = worst_call(card, shape.prompt_tokens, shape.output_max)
    whole = expected(card, shape, cached_tokens=asked.cached_tokens(card))
    return None if first is None or whole is None else max(first, whole)


def _plain(usd: Decimal) -> str:
    """Without the zeros at its end."""
    return f"{usd.normalize():f}"


def _least(*several: Decimal | None) -> Decimal | None:
    return min((usd for usd in several if usd is not None), default=None)
