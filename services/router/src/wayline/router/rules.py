"""The rules of a route, one after another: each may move the choice to another slot, and says why. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_UP, Decimal

from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import Attachment, TextPart
from wayline.contracts.errors import Reject
from wayline.contracts.events import Observed, ToolsObserved, Warm
from wayline.contracts.jobs import Complexity, SubmitJob
from wayline.contracts.models import ModelCard, Slot
from wayline.contracts.money import dollars
from wayline.llm import media
from wayline.llm.escalation import FALLING, RISING, after
from wayline.router.estimate import Level, Shape, expected, first_call, shape_of
from wayline.router.policy import SLOT_OF, TIER_OF, Policy, current, task_name
from wayline.router.slots import SLOTS, Needs, Slots, needs_of

DEFAULT_CAP = "the default, WAYLINE_ROUTER_JOB_BUDGET_USD"
SHOWN_USD = Decimal("0.0001")
"""How exactly a reason says what something would cost."""


@dataclass(frozen=True, slots=True)
class Asked:
    """All that a decision rests on beside the models: what a job asks of its route, and what it is given for it."""

    job: SubmitJob
    config: AgentConfig
    policy: Policy = field(default_factory=current)
    left_usd: Decimal | None = None
    """What the budgets that somebody has set leave."""
    cap_usd: Decimal | None = None
    """What any job may cost: it keeps no unknown price out."""
    warm: Warm | None = None
    attachments: tuple[Attachment, ...] = ()
    """The documents that the job and its agent name."""
    observed: tuple[Observed, ...] = ()
    """What the agent's recent jobs used, by model and slot."""
    tools: ToolsObserved | None = None
    """How large the tool definitions of its last job were."""
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
        """What a model must take to do the job at all."""
        return needs_of(
            self.job, self.config, kept_tokens=self.kept_tokens, attachments=self.attachments, tools=self.tools
        )

    @property
    def kept_tokens(self) -> int:
        """Tokens that the session's last job left in a provider's cache."""
        return self.warm.prefix_tokens if self.warm else 0

    @property
    def text(self) -> str:
        """The words of the job's input."""
        return "\n".join(self._texts)

    @property
    def last_text(self) -> str:
        """Return the last of the texts: what stands before it is what it is about, or how to answer it."""
        return next((text for text in reversed(self._texts) if text.strip()), "")

    @property
    def _texts(self) -> list[str]:
        return [part.text for part in self.job.parts() if isinstance(part, TextPart)]

    @property
    def task_type(self) -> str | None:
        """What type of task it is, by the first who says so; None: nobody does."""
        return self.job.options.task_type or self.config.task_type or self.classified

    def shape(self, level: Level = "moderate") -> Shape:
        """How large the job's calls are expected to be."""
        return shape_of(
            self.job,
            self.config,
            level=level,
            kept_tokens=self.kept_tokens,
            cap_usd=self.own_usd,
            attachments=self.attachments,
            observed=self.observed,
            tools=self.tools,
        )

    def cached_tokens(self, card: ModelCard) -> int:
        """How much of the first prompt this model's provider still keeps: what is pinned follows the prefix."""
        if self.warm is None or self.warm.model != card.name:
            return 0
        return self.warm.prefix_tokens + media.parts_tokens(card, self.config.pinned, self.attachments)


@dataclass(frozen=True, slots=True)
class Choice:
    """A slot, and why it is the right one so far: a clause that each rule may go on with."""

    slot: Slot
    why: str

    def moved(self, slot: Slot, because: str) -> Choice:
        """The same choice, in another slot for this reason."""
        return Choice(slot, f"{self.why}, but {because}")


def by_task(asked: Asked, complexity: Complexity, slots: Slots) -> Choice:
    """The tier of the type of task; complexity moves it where the policy says so and the slot has a model."""
    policy, said = asked.policy, asked.task_type
    tier = policy.tier_of(said) if said else None
    if said and tier:
        name = task_name(said).replace("_", " ")
        known = f"it was classified as {name}, which" if asked.classified else name
        choice = Choice(SLOT_OF[tier], f"{known} is {tier} work")
    elif said:
        # It has a name, though not one of ours: that says more than how its words look.
        return Choice(SLOT_OF[policy.unknown], f"{said!r} is no type of task that the policy knows")
    else:
        choice = Choice(SLOT_OF[policy.unknown], "nobody has said what type of task it is")
    slot = policy.moves.get(tier or "unknown", {}).get(complexity.level, choice.slot)
    # The name of a task says more about it than its words do, unless they are very clear.
    content = complexity.score if complexity.content is None else complexity.content
    if slot == choice.slot or slot not in slots.models or (tier and content < policy.sure):
        return choice
    measured = f"content {content:.2f}" if complexity.level == "complex" else f"score {complexity.score:.2f}"
    return choice.moved(slot, f"it looks {complexity.level} ({measured})")


def by_ability(choice: Choice, asked: Asked, slots: Slots) -> Choice:
    """The slot's own model, else another of its tier, else the next slot up that can take the job, or the next down."""
    missed = slots.away.get(choice.slot)
    because = f"{missed.model} {missed.why}" if missed else f"the {choice.slot} slot has no model for {asked.needs}"
    if choice.slot in slots.models and not slots.shut(choice.slot):
        return choice.moved(choice.slot, because) if missed else choice
    if choice.slot not in slots.models and choice.slot not in slots.unfit:
        raise empty(choice.slot)
    others = (*after(choice.slot, RISING), *after("reasoning", FALLING), "reasoning")
    able = next(iter(slots.of(others)), None)
    if able is None:
        raise unfit(asked)
    return choice.moved(able, because)


def empty(slot: Slot) -> Reject:
    """The refusal where a slot has no model at all."""
    return Reject(
        f"no model of the tier {TIER_OF[slot]!r} can be reached: set the key of a provider that has one, add one with "
        f"PUT /v1/models, or name a model in the agent's routing.{slot}",
        code="empty_tier",
        status=422,
    )


def unfit(asked: Asked) -> Reject:
    """The refusal where no model can take the job."""
    return Reject(
        f"no model of this agent can take the job, which needs {asked.needs}: name one that can in its routing",
        code="model_unfit",
        status=422,
    )


def by_reasoning(choice: Choice, asked: Asked, complexity: Complexity, slots: Slots) -> Choice:
    """The reasoning slot, for work that needs it where the policy says so."""
    if not (asked.policy.reasoning and complexity.needs_reasoning and "reasoning" in slots.models):
        return choice
    needs = f"it needs reasoning (score {complexity.score:.2f})"
    missed = slots.away.get("reasoning")
    if missed is None:
        return choice.moved("reasoning", needs)
    slot = choice.slot if slots.shut("reasoning") else "reasoning"
    return choice.moved(slot, f"{needs}, where {missed.model} {missed.why}")


def by_warm_cache(choice: Choice, asked: Asked, shape: Shape, slots: Slots) -> Choice:
    """Stay with the session's model where that costs less, and it stands no lower than the work asks for."""
    warm, card = asked.warm, slots.models[choice.slot]
    if warm is None or card.name == warm.model:
        return choice
    above = slots.of(after(choice.slot, SLOTS))
    stay: Slot | None = next((slot for slot in above if slots.models[slot].name == warm.model), None)
    if stay is None:
        return choice
    cached = asked.cached_tokens(slots.models[stay])
    leaving = expected(card, shape, slot=choice.slot)
    staying = expected(slots.models[stay], shape, slot=stay, cached_tokens=cached)
    if leaving is None or staying is None or leaving <= staying:
        return choice
    kept = f"{cached} tokens are warm in the cache of {warm.model}"
    return choice.moved(stay, f"{kept}, which makes staying {shown(leaving - staying)} cheaper")


def by_budget(choice: Choice, asked: Asked, shape: Shape, slots: Slots) -> Choice:
    """The next slot down that the budget can pay; where none can, the cheapest one goes on until the cap."""
    left = asked.spendable_usd
    if left is None or not asked.config.routing.budget_aware:
        return choice
    down = slots.of((choice.slot, *after(choice.slot, FALLING)))
    needs: dict[Slot, _Need] = {slot: need for slot in down if (need := _need(asked, shape, slots, slot)) is not None}
    if choice.slot not in needs and not asked.priced_only:
        return choice
    payable: list[Slot] = [slot for slot in needs if needs[slot].usd <= left]
    cheapest: list[Slot] = sorted(needs, key=lambda slot: needs[slot].usd)
    fit = (payable or cheapest or down)[0]
    if fit == choice.slot:
        return choice
    need = needs.get(choice.slot)
    said = need.why if need else f"nobody knows what the {choice.slot} slot costs"
    return choice.moved(fit, f"{said} and {_limit(asked, left)}")


@dataclass(frozen=True, slots=True)
class _Need:
    """What must be left for a job to begin in a slot, and why so much."""

    usd: Decimal
    why: str


def _need(asked: Asked, shape: Shape, slots: Slots, slot: Slot) -> _Need | None:
    """Price the first call, or the whole job where that is dearer and recent jobs of the agent have shown it.

    A whole job that is only guessed keeps nobody out: when money runs out on the way, the executor goes on with the
    next slot down whose call can be paid.
    """
    card = slots.models[slot]
    call = first_call(card, shape, slot=slot)
    whole = expected(card, shape, slot=slot, cached_tokens=asked.cached_tokens(card))
    if call is None or whole is None:
        return None
    observed = shape.observed_on(card, slot)
    if observed is None or call >= whole:
        return _Need(call, f"one call in the {slot} slot can cost {shown(call)}")
    as_before = f"as the agent's last {observed.jobs} jobs there"
    return _Need(whole, f"the work would cost about {shown(whole)} in the {slot} slot, {as_before},")


def _limit(asked: Asked, left: Decimal) -> str:
    """What may be spent, and the name of the setting that says so."""
    if asked.job.options.budget_usd is not None and asked.job.options.budget_usd <= left:
        return f"the job may spend {dollars(left)} (its own options.budget_usd)"
    if asked.left_usd is not None and asked.left_usd <= left:
        return f"the budgets leave {dollars(left)}"
    return f"the job may spend {dollars(left)} ({DEFAULT_CAP}; options.budget_usd sets another)"


def shown(usd: Decimal) -> str:
    """An estimate as a reason says it: its last digits mean nothing."""
    return dollars(usd.quantize(SHOWN_USD, rounding=ROUND_UP) if usd > SHOWN_USD else usd)


def _least(*several: Decimal | None) -> Decimal | None:
    return min((usd for usd in several if usd is not None), default=None)
