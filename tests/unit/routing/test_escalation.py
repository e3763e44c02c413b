"""Who goes on when a model is too weak, away, or too dear."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.events import Candidates
from wayline.contracts.jobs import Complexity, Route
from wayline.contracts.models import CacheRules, ModelCard, Prices, Rates, Slot, Tier
from wayline.routing import next_route


def card(name: str, tier: Tier, usd: str | None, window: int = 100_000) -> ModelCard:
    provider, _, model = name.partition("/")
    rates = Rates(input=Decimal(usd), output=Decimal(usd) * 5) if usd else None
    return ModelCard(
        provider=provider, model=model, tier=tier, context_window=window, prices=rates and Prices(rates=rates)
    )


CANDIDATES = Candidates(
    cards=(
        card("a/small", "flash", "0.1"),
        card("a/middle", "standard", "2"),
        card("a/large", "premium", "4"),
        card("b/thinker", "reasoning", "8"),
        card("b/middle", "standard", "2"),
        card("c/middle", "standard", "1", window=1_000_000),
    ),
    slots={"fast": "a/small", "primary": "a/middle", "escalation": "a/large", "reasoning": "b/thinker"},
    fallbacks=("b/middle", "c/middle"),
)
PRIMARY = Route(
    provider="a",
    model="middle",
    tier="standard",
    reason="unknown work goes to the primary slot",
    task_type="drafting",
    complexity=Complexity(score=0.3, level="simple"),
    estimated_cost_usd=Decimal("0.02"),
)
FAST = PRIMARY.model_copy(update={"model": "small", "tier": "flash", "slot": "fast"})


def test_a_weak_step_rises_one_slot_and_keeps_the_prediction():
    assert next_route(CANDIDATES, PRIMARY, "escalation", why="the model was unsure (0.40 of 0.60)") == Route(
        provider="a",
        model="large",
        tier="premium",
        slot="escalation",
        reason="the model was unsure (0.40 of 0.60), so the job goes on in the escalation slot with a/large",
        task_type="drafting",
        complexity=Complexity(score=0.3, level="simple"),
        estimated_cost_usd=Decimal("0.02"),
    )


def test_the_fast_slot_rises_to_the_primary_before_the_escalation():
    rising = next_route(CANDIDATES, FAST, "escalation", why="the step failed")

    assert rising is not None and (rising.name, rising.slot) == ("a/middle", "primary")


def test_no_slot_is_above_escalation_or_a_locked_primary():
    top = PRIMARY.model_copy(update={"model": "large", "tier": "premium", "slot": "escalation"})
    locked = Candidates(cards=CANDIDATES.cards[1:2], slots={"primary": "a/middle"})

    assert next_route(CANDIDATES, top, "escalation", why="the step failed") is None
    assert next_route(locked, PRIMARY, "escalation", why="the step failed") is None


def test_a_reasoning_job_does_not_rise_to_a_lesser_reasoner():
    thinking = PRIMARY.model_copy(
        update={"provider": "b", "model": "thinker", "tier": "reasoning", "slot": "reasoning"}
    )

    assert next_route(CANDIDATES, thinking, "escalation", why="the step failed") is None


def test_slots_that_name_the_same_model_are_one():
    same = CANDIDATES.model_copy(update={"slots": {"fast": "a/middle", "primary": "a/middle", "escalation": "a/large"}})
    rising = next_route(same, FAST.model_copy(update={"model": "middle"}), "escalation", why="the step failed")

    assert rising is not None and rising.name == "a/large"


def test_an_escalation_may_name_a_cheaper_model():
    """What is dearer is not better: the slots say who is."""
    slots = {"primary": "a/large", "escalation": "a/middle"}
    dear = PRIMARY.model_copy(update={"model": "large", "tier": "premium"})
    rising = next_route(CANDIDATES.model_copy(update={"slots": slots}), dear, "escalation", why="the step failed")

    assert rising is not None and (rising.name, rising.slot) == ("a/middle", "escalation")


def test_the_fallbacks_are_asked_in_their_order_and_none_twice():
    first = next_route(CANDIDATES, PRIMARY, "fallback", why="a/middle is overloaded")
    assert first is not None
    assert (first.name, first.slot) == ("b/middle", "primary")
    assert first.reason == "a/middle is overloaded, so the job falls back to b/middle"

    second = next_route(CANDIDATES, first, "fallback", why="b/middle is overloaded")
    assert second is not None and second.name == "c/middle"
    assert next_route(CANDIDATES, second, "fallback", why="c/middle is overloaded") is None


def test_a_job_that_fell_back_can_still_escalate_from_its_slot():
    fallen = PRIMARY.model_copy(update={"provider": "b"})
    rising = next_route(CANDIDATES, fallen, "escalation", why="the step failed")

    assert rising is not None and rising.name == "a/large"


def test_avoided_models_and_too_small_windows_are_passed_over():
    avoiding = next_route(CANDIDATES, PRIMARY, "fallback", why="it is away", avoid={"b/middle"})
    longer = next_route(CANDIDATES, PRIMARY, "fallback", why="the prompt is too long", prompt_tokens=100_000)

    assert avoiding is not None and avoiding.name == "c/middle"
    assert longer is not None and longer.name == "c/middle"


def test_a_spent_budget_falls_to_the_next_payable_slot():
    large = PRIMARY.model_copy(update={"model": "large", "tier": "premium", "slot": "escalation"})
    asked: list[tuple[str, str]] = []

    def only_small(card: ModelCard, slot: Slot) -> bool:
        asked.append((card.name, slot))
        return card.name == "a/small"

    falling = next_route(CANDIDATES, large, "budget", why="$0.01 is left", payable=only_small)

    assert asked == [("a/middle", "primary"), ("a/small", "fast")]
    assert falling is not None
    assert (falling.name, falling.slot) == ("a/small", "fast")
    assert falling.reason == "$0.01 is left, so the job goes on in the fast slot with a/small"
    assert next_route(CANDIDATES, PRIMARY, "budget", why="$0.01 is left", payable=lambda *_: False) is None


def test_leaving_a_warm_cache_names_the_cost_of_reading_anew():
    marked = CacheRules(kind="breakpoints", min_tokens=1_000)
    rates = Rates(input=Decimal(2), output=Decimal(10), cache_write_5m=Decimal("2.5"))
    writing = ModelCard(provider="b", model="middle", tier="standard", prices=Prices(rates=rates), cache=marked)
    candidates = CANDIDATES.model_copy(update={"cards": (*CANDIDATES.cards[:4], writing)})

    rising = next_route(candidates, PRIMARY, "escalation", why="it was unsure", warm_tokens=60_000)
    fallen = next_route(candidates, PRIMARY, "fallback", why="it is away", warm_tokens=60_000)
    unknown = candidates.model_copy(update={"cards": (writing.model_copy(update={"prices": None}),)})
    dark = next_route(unknown, PRIMARY, "fallback", why="it is away", warm_tokens=60_000)

    assert rising and rising.reason.endswith("with a/large, which reads 60000 warm tokens anew for $0.24")
    assert fallen and fallen.reason.endswith("to b/middle, which reads 60000 warm tokens anew for $0.15")
    assert dark and dark.reason.endswith("which reads 60000 warm tokens anew for an unknown price")


def test_candidates_without_cards_offer_no_route():
    for cause in ("escalation", "fallback", "budget"):
        assert next_route(Candidates(), PRIMARY, cause, why="the step failed") is None
