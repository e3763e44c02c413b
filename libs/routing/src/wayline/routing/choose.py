"""Which model takes a job, and why in one sentence. Pure: what was decided once is decided again by a backtest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.errors import Reject
from wayline.contracts.events import Away, Candidates, JobRouted, Limits
from wayline.contracts.jobs import Complexity, JobOptions, Route, SubmitJob
from wayline.contracts.models import ModelCard, Slot
from wayline.llm.prices import LOCAL
from wayline.routing import classification, rules
from wayline.routing.decision import Decision
from wayline.routing.estimate import expected, first_call, least_call, span
from wayline.routing.policy import Policy
from wayline.routing.routing_input import RoutingInput
from wayline.routing.slots import SLOTS, Slots, card_of, fallbacks_of, first_fit, slots_of
from wayline.routing.step_limit import Level, adapted

TENANTS_DEFAULT = "neither the job nor its agent names a model, so the default of the tenant's settings takes it"
"""Why a job goes with its tenant's own default model."""
STAYS = "the job that it branches off was with it"
"""Why a fork, such as a redrive, goes on with a model: no policy decides that."""


def choose_route(
    inputs: RoutingInput,
    *,
    default_model: str,
    cards: Sequence[ModelCard] = (),
    away: Mapping[str, str] | None = None,
) -> Decision:
    """Choose by the job's own wish, then its agent's, then the cheapest slot that can do the work.

    `cards` are the tenant's usable models, in the order in which those of a tier are preferred. `default_model` takes
    jobs for which nobody names a model: where it is not the offline one, or where there is no other. Before it comes
    that of the tenant's settings, as long as the tenant can use it. `away` are models
    that cannot be called now, with why: an agent in mode `auto` passes them over. Raises Reject.
    """
    job, config = inputs.job, inputs.config
    if job.options.model:
        return _only(inputs, _able(inputs, job.options.model, cards), "the job asked for it")
    if config.model:
        fallbacks = fallbacks_of(config.routing, cards, inputs.needs)
        return _only(inputs, _able(inputs, config.model, cards), "the agent is set to it", fallbacks)
    own = None if _names_models(config.routing) else inputs.default_model
    if own is not None and any(card.name == own for card in cards):
        return _decision(inputs, Slots({}), _able(inputs, own, cards), TENANTS_DEFAULT)
    if _takes_default(config.routing, default_model, cards):
        reason = "neither the job nor its agent names a model, so the default takes it"
        return _decision(inputs, Slots({}), _able(inputs, default_model, cards), reason)
    avoided = away if config.routing.mode == "auto" else None
    slots = slots_of(config.routing, cards, inputs.needs, away=avoided)
    return _from_slots(inputs, slots, classifier=classification.classifier_of(slots, cards, away=away))


def choose_again(job: SubmitJob, routed: JobRouted, *, policy: Policy, task_type: str | None = None) -> Decision:
    """Decide by a policy on what was recorded; the policy that decided then decides the same.

    Models that were not recorded cannot be chosen: a slot without one leaves the job to the next. `task_type` is what a
    classification said: where that asks for another slot, the route is the one that the job then went.
    """
    inputs = RoutingInput(
        job,
        routed.config,
        policy,
        left_usd=routed.left_usd,
        cap_usd=routed.limits.budget_usd,
        warm=routed.warm,
        attachments=routed.attachments,
        observed=routed.candidates.observed,
        tools=routed.candidates.tools,
        # A fork was decided by the limits of the job that it branches off, and is recorded with today's.
        steps_max=None if job.fork else routed.limits.max_steps,
    )
    pinned = routed.candidates
    stays = job.fork is not None and routed.route.reason == STAYS
    if stays or job.options.model or routed.config.model or not pinned.slots:
        return Decision(routed.route, pinned, policy.label)
    cards = {card.name: card for card in pinned.cards}
    models: dict[Slot, ModelCard] = {slot: cards[name] for slot, name in pinned.slots.items() if name in cards}
    fallbacks = tuple(cards[name] for name in pinned.fallbacks if name in cards)
    away: dict[Slot, Away] = {missed.slot: missed for missed in routed.away if missed.slot in models}
    slots = Slots(models, frozenset(SLOTS) - models.keys(), fallbacks, away)
    decision = _from_slots(inputs, slots, classifier=cards.get(routed.route.classifier or ""))
    if task_type is None or inputs.task_type:
        return decision
    if decision.candidates.tasks:
        return replace(decision, route=decision.candidates.tasks.get(task_type) or decision.route)
    # Another policy: it would not have asked, and decides by what is known now.
    return _from_slots(replace(inputs, classified=task_type), slots, classifier=None)


def choose_limits(
    options: JobOptions, config: AgentConfig, *, steps_level: Level | None = None, context_level: Level | None = None
) -> Limits:
    """Return what bounds the job: its own options where it has them, else its agent's configuration.

    `steps_level` and `context_level`: the complexity that its step limit and its context follow; None: none.
    """
    cap = options.max_steps or config.max_steps
    return Limits(
        max_steps=adapted(cap, steps_level),
        steps_cap=None if steps_level is None else cap,
        steps_level=steps_level,
        context_level=context_level,
        max_seconds=options.max_seconds or config.max_seconds,
        max_output_tokens=options.max_output_tokens or config.max_output_tokens,
        budget_usd=options.budget_usd,
    )


def _takes_default(routing: Routing, default_model: str, cards: Sequence[ModelCard]) -> bool:
    if _names_models(routing):
        return False
    return default_model.partition("/")[0] not in LOCAL or all(card.provider in LOCAL for card in cards)


def _names_models(routing: Routing) -> bool:
    return any(getattr(routing, slot) for slot in SLOTS)


def _able(inputs: RoutingInput, name: str, cards: Sequence[ModelCard]) -> ModelCard:
    card = card_of(name, cards, tier="standard")
    if first_fit([card], cards, inputs.needs) is None:
        raise Reject(
            f"{name} cannot take this job: {inputs.needs.unmet_by(card)}. Name another model",
            code="model_unfit",
            status=422,
        )
    return card


def _only(inputs: RoutingInput, card: ModelCard, reason: str, fallbacks: tuple[ModelCard, ...] = ()) -> Decision:
    return _decision(inputs, Slots({"primary": card}, fallbacks=fallbacks), card, reason)


def _from_slots(inputs: RoutingInput, slots: Slots, *, classifier: ModelCard | None) -> Decision:
    """Apply the rules to the job, and to each type of task that the classifier may find it to be."""
    if inputs.config.routing.mode == "locked" or inputs.policy.locked:
        return _locked(inputs, slots)
    complexity = inputs.complexity
    decision = _by_rules(inputs, slots, complexity)

    # Nobody is refused for what a model takes a job for: a type whose slot is empty goes to the next one that is not.
    able = replace(slots, unfit=frozenset(SLOTS) - slots.models.keys())

    def decide(label: str) -> Decision:
        return _by_rules(replace(inputs, classified=label), able, complexity)

    question = classification.question(inputs, decision, classifier, decide)
    if question is None:
        return decision
    pinned = {card.name: card for card in (*decision.candidates.cards, question.card)}
    candidates = decision.candidates.model_copy(update={"cards": tuple(pinned.values()), "tasks": question.tasks})
    return replace(
        decision, route=classification.with_question(inputs, decision.route, question), candidates=candidates
    )


def _by_rules(inputs: RoutingInput, slots: Slots, complexity: Complexity) -> Decision:
    """Apply each rule in turn: the task, its complexity, what a model can take, reasoning, a warm cache, the budget."""
    shape = inputs.shape(complexity.level)
    choice = rules.by_task(inputs, complexity, slots)
    choice = rules.by_ability(choice, inputs, slots)
    choice = rules.by_reasoning(choice, inputs, complexity, slots)
    choice = rules.by_warm_cache(choice, inputs, shape, slots)
    choice = rules.by_budget(choice, inputs, shape, slots)
    card = slots.models[choice.slot]
    reason = f"{choice.why}, so the {choice.slot} slot takes it with {card.name}"
    return _decision(inputs, slots, card, reason, slot=choice.slot, complexity=complexity)


def _locked(inputs: RoutingInput, slots: Slots) -> Decision:
    """Choose the primary or nobody."""
    card = slots.models.get("primary")
    if card is None:
        raise rules.unfit(inputs) if "primary" in slots.unfit else rules.empty("primary")
    return _only(inputs, card, "the agent is locked to its primary model", slots.fallbacks)


def _decision(
    inputs: RoutingInput,
    slots: Slots,
    card: ModelCard,
    reason: str,
    *,
    slot: Slot = "primary",
    complexity: Complexity | None = None,
) -> Decision:
    shape = inputs.shape(complexity.level if complexity else "moderate")
    probable, bounds = (
        expected(card, shape, slot=slot, cached_tokens=inputs.cached_tokens(card)),
        span(card, shape, slot=slot),
    )
    route = Route(
        provider=card.provider,
        model=card.model,
        tier=card.tier,
        reason=reason,
        slot=slot,
        task_type=inputs.task_type,
        complexity=complexity,
        # It ends at its cap, whatever it would have cost beyond it.
        estimated_cost_usd=min(probable, bounds[1]) if probable is not None and bounds is not None else probable,
        estimated_cost_range_usd=bounds,
    )
    pinned = {one.name: one for one in (card, *slots.models.values(), *slots.fallbacks)}
    candidates = Candidates(
        cards=tuple(pinned.values()),
        slots={slot: one.name for slot, one in slots.models.items()},
        fallbacks=tuple(one.name for one in slots.fallbacks if one.name != card.name),
        observed=tuple(one for one in inputs.observed if one.model in pinned),
        tools=inputs.tools,
    )
    return Decision(
        route,
        candidates,
        inputs.policy.label,
        first_call_usd=first_call(card, shape, slot=slot),
        least_call_usd=least_call(card, shape, slot=slot),
        away=tuple(slots.away.values()),
    )
