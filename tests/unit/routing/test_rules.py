"""Which model takes a job by what is asked for and how hard it looks: one test a rule."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.chat import TextPart
from wayline.contracts.errors import Reject
from wayline.contracts.events import Candidates
from wayline.contracts.jobs import JobOptions, Route
from wayline.contracts.models import ModelCard
from wayline.routing import TENANTS_DEFAULT, Decision, current_policy, policy_with
from wayline.routing.policy import task_name

from .routed import (
    CARDS,
    EASY,
    FLASH,
    HARD,
    LOCAL,
    MIDDLING,
    OFFLINE,
    PREMIUM,
    PROOF,
    REASONING,
    SEEING,
    STANDARD,
    card,
    chosen,
    decide,
    named,
)

# Who is asked first


def test_a_jobs_own_model_comes_before_its_agents():
    agent = AgentConfig(model="a/standard", routing=Routing(fallbacks=("b/seeing",)), adapt_steps=False)

    assert decide(config=agent, options=JobOptions(model="a/premium")) == Decision(
        route=Route(
            provider="a",
            model="premium",
            tier="premium",
            reason="the job asked for it",
            estimated_cost_usd=Decimal("0.039279600"),
            estimated_cost_range_usd=(Decimal("0.002876000"), Decimal("1.487740000")),
        ),
        candidates=Candidates(cards=(PREMIUM,), slots={"primary": "a/premium"}),
        policy=current_policy().label,
        first_call_usd=Decimal("0.082252000"),
        least_call_usd=Decimal("0.012332000"),
    )


def test_an_agents_own_model_is_kept_with_its_fallbacks():
    agent = AgentConfig(model="a/standard", routing=Routing(fallbacks=("b/seeing", "chat/unknown", "premium")))
    decision = decide(HARD, agent)

    assert (decision.route.name, decision.route.reason) == ("a/standard", "the agent is set to it")
    assert decision.candidates == Candidates(
        cards=(STANDARD, SEEING, ModelCard(provider="chat", model="unknown", tier="standard"), PREMIUM),
        slots={"primary": "a/standard"},
        fallbacks=("b/seeing", "chat/unknown", "a/premium"),
    )


def test_a_locked_agent_always_gets_its_primary_and_nothing_else():
    locked = AgentConfig(routing=Routing(mode="locked", reasoning="reasoning"), task_type="negotiation")
    decision = decide(PROOF, locked)

    assert decision.route.name == "a/standard"
    assert decision.route.reason == "the agent is locked to its primary model"
    assert decision.candidates == Candidates(cards=(STANDARD,), slots={"primary": "a/standard"})


def test_where_only_the_offline_model_exists_it_takes_every_job():
    assert decide(PROOF, AgentConfig(routing=Routing()), options=named("negotiation"), cards=(LOCAL,)) == Decision(
        route=Route(
            provider="offline",
            model="extractive",
            tier="flash",
            reason="neither the job nor its agent names a model, so the default takes it",
            task_type="negotiation",
            estimated_cost_usd=Decimal(0),
            estimated_cost_range_usd=(Decimal(0), Decimal(0)),
        ),
        candidates=Candidates(cards=(LOCAL,)),
        policy=current_policy().label,
        first_call_usd=Decimal(0),
        least_call_usd=Decimal(0),
    )


def test_a_configured_default_model_takes_jobs_that_name_none():
    route = decide(default_model="chat/mine").route

    assert (route.name, route.tier, route.estimated_cost_usd) == ("chat/mine", "standard", None)
    assert chosen(config=AgentConfig(routing=Routing(primary="a/premium")), default_model="chat/mine")[1] == "a/premium"


@pytest.mark.parametrize("of_installation", [OFFLINE, "chat/mine"])
def test_a_tenants_default_model_takes_jobs_that_name_none(of_installation: str):
    facts: dict[str, Any] = {"default_model": of_installation}
    job, agent = JobOptions(model="a/flash"), AgentConfig(routing=Routing(primary="a/standard"))

    route = decide(own_default="a/premium", **facts).route
    others = [
        chosen(options=job, own_default="a/premium", **facts)[1],
        chosen(config=AgentConfig(model="a/flash"), own_default="a/premium", **facts)[1],
        chosen(config=agent, own_default="a/premium", **facts)[1],
    ]

    assert (route.name, route.reason) == ("a/premium", TENANTS_DEFAULT)
    assert others == ["a/flash", "a/flash", "a/standard"]
    # One that the tenant cannot use any more.
    assert decide(own_default="a/gone", **facts) == decide(**facts)


@pytest.mark.parametrize("model", ["gpt", "/gpt", "chat/"])
def test_a_model_that_is_not_provider_slash_model_is_refused(model):
    for config, options in [
        (AgentConfig(), JobOptions(model=model)),
        (AgentConfig(model=model), JobOptions()),
        (AgentConfig(routing=Routing(escalation=model)), JobOptions()),
        (AgentConfig(routing=Routing(fallbacks=(model,))), JobOptions()),
    ]:
        with pytest.raises(Reject, match="not of the form provider/model"):
            decide(config=config, options=options)


@pytest.mark.parametrize("model", ["x" * 65 + "/gpt", "openai/" + "x" * 201])
def test_a_model_whose_name_no_record_can_hold_is_refused(model):
    with pytest.raises(Reject, match="is too long"):
        decide(options=JobOptions(model=model))


# What kind of work it is


@pytest.mark.parametrize(
    ("task_type", "tier"),
    [
        ("intent classification", "flash"),
        ("sentiment", "flash"),
        ("Scoring", "flash"),
        ("search", "standard"),
        ("qualification", "standard"),
        ("drafting", "standard"),
        ("objections", "standard"),
        ("negotiation", "premium"),
        ("Contract-Review", "premium"),
        ("complex_coordination", "premium"),
        ("juggling", "standard"),
    ],
)
def test_the_task_type_decides_the_tier(task_type, tier):
    assert decide(options=named(task_type)).route.tier == tier


def test_a_known_type_is_the_whole_reason():
    assert decide(options=named("negotiation")).route == Route(
        provider="a",
        model="premium",
        tier="premium",
        slot="escalation",
        reason="negotiation is premium work, so the escalation slot takes it with a/premium",
        task_type="negotiation",
        complexity=current_policy().assess(MIDDLING),
        estimated_cost_usd=decide(options=named("negotiation")).route.estimated_cost_usd,
        estimated_cost_range_usd=decide(options=named("negotiation")).route.estimated_cost_range_usd,
    )


def test_the_jobs_type_comes_before_the_agents():
    agent = AgentConfig(task_type="negotiation")

    assert decide(config=agent, options=named("sentiment")).route.tier == "flash"
    assert decide(config=agent).route.tier == "premium"


def test_an_unknown_task_type_is_quoted():
    assert decide(options=named("juggling")).route.reason == (
        "'juggling' is no type of task that the policy knows, so the primary slot takes it with a/standard"
    )


def test_an_empty_tier_is_refused_with_what_to_configure():
    with pytest.raises(
        Reject, match=r"tier 'premium' can be reached: set the key .* PUT /v1/models, .*routing\.escalation"
    ) as told:
        decide(options=named("negotiation"), cards=(LOCAL, FLASH, STANDARD))

    assert (told.value.code, told.value.status) == ("empty_tier", 422)


def test_a_slot_names_a_model_or_its_tiers_first():
    other = card("b/flash", "flash")
    agent = AgentConfig(routing=Routing(fast="b/flash", primary="premium", escalation="chat/mine"))

    assert decide(config=agent, cards=(*CARDS, other)).candidates.slots == {
        "fast": "b/flash",
        "primary": "a/premium",
        "escalation": "chat/mine",
    }
    assert chosen(options=named("sentiment"), cards=(*CARDS, other)) == ("fast", "a/flash")


def test_an_unknown_model_has_one_tier_in_every_slot():
    agent = AgentConfig(
        routing=Routing(primary="chat/mine", escalation="chat/mine", fallbacks=("chat/mine", "a/flash"))
    )
    mine = ModelCard(provider="chat", model="mine", tier="standard")

    assert decide(HARD, agent, cards=(FLASH,)).candidates == Candidates(
        cards=(mine, FLASH),
        slots={"fast": "a/flash", "primary": "chat/mine", "escalation": "chat/mine"},
        fallbacks=("a/flash",),
    )
    assert decide(HARD, agent, cards=(FLASH,)).route.tier == "standard"


def test_a_local_model_is_never_meant_by_a_tier():
    with pytest.raises(Reject, match="tier 'flash'"):
        decide(options=named("sentiment"), cards=(LOCAL, STANDARD))


@pytest.mark.parametrize(
    ("task_type", "slot"),
    [
        ("intent_classification", "fast"),
        ("sentiment_analysis", "fast"),
        ("Lead scoring", "fast"),
        ("property_search", "primary"),
        ("qualification", "primary"),
        ("draft-reply", "primary"),
        ("objection_handling", "primary"),
        ("negotiation", "escalation"),
        ("contract_review", "escalation"),
        ("complex_coordination", "escalation"),
    ],
)
def test_the_fields_names_of_task_types_are_known(task_type: str, slot: str):
    route = decide(EASY, options=named(task_type)).route

    assert (route.slot, route.task_type) == (slot, task_type)
    assert "no type of task" not in route.reason


def test_every_alias_names_a_type_of_task_and_is_none_itself():
    policy = current_policy()

    assert {policy.tiers.get(name) is not None for name in policy.aliases.values()} == {True}
    assert not policy.aliases.keys() & policy.tiers.keys()
    assert all(task_name(alias) == alias for alias in policy.aliases)


@pytest.mark.parametrize("text", [EASY, MIDDLING, HARD])
def test_an_unknown_type_is_standard_work_however_its_words_look(text: str):
    assert chosen(text, options=named("juggling")) == ("primary", "a/standard")


# How hard it looks


def test_work_of_no_named_type_is_routed_by_complexity():
    assert chosen(EASY) == ("fast", "a/flash")
    assert chosen(MIDDLING) == ("primary", "a/standard")
    assert chosen(HARD) == ("escalation", "a/premium")


def test_the_reason_of_a_move_quotes_what_it_was_decided_by():
    up, down = decide(HARD).route, decide(EASY).route
    assert up.complexity is not None and down.complexity is not None

    assert up.reason == (
        f"nobody has said what type of task it is, but it looks complex (content {up.complexity.content:.2f}), "
        "so the escalation slot takes it with a/premium"
    )
    assert f"but it looks simple (score {down.complexity.score:.2f})," in down.reason


def test_only_a_jobs_last_text_decides_its_complexity():
    parts = (TextPart(text="Prove every theorem of this book by induction."), TextPart(text=EASY))

    assert chosen(parts) == ("fast", "a/flash")
    assert chosen((TextPart(text=EASY), TextPart(text=HARD), TextPart(text=" "))) == ("escalation", "a/premium")


def test_standard_work_that_looks_complex_rises_and_flash_work_stays():
    assert chosen(PROOF, options=named("drafting")) == ("escalation", "a/premium")
    assert chosen(PROOF, options=named("sentiment")) == ("fast", "a/flash")
    assert chosen(EASY, options=named("negotiation")) == ("escalation", "a/premium")


def test_named_work_rises_only_where_its_words_are_very_clear():
    seen = current_policy().assess(HARD)
    assert seen.level == "complex" and seen.content is not None and seen.content < current_policy().sure

    assert chosen(HARD, options=named("search")) == ("primary", "a/standard")
    assert chosen(HARD) == ("escalation", "a/premium")


def test_complexity_moves_nothing_to_a_slot_that_has_no_model():
    assert chosen(EASY, cards=(STANDARD,)) == ("primary", "a/standard")
    assert chosen(HARD, cards=(STANDARD,)) == ("primary", "a/standard")


# Reasoning


def test_reasoning_is_the_last_rule_and_only_where_configured():
    with_it, without = AgentConfig(routing=REASONING, task_type="sentiment"), AgentConfig(task_type="sentiment")
    route = decide(PROOF, with_it).route
    assert route.complexity is not None and route.complexity.needs_reasoning

    assert (route.slot, route.name) == ("reasoning", "a/thinker")
    assert route.reason == (
        f"sentiment is flash work, but it needs reasoning (score {route.complexity.score:.2f}), "
        "so the reasoning slot takes it with a/thinker"
    )
    assert chosen(PROOF, without) == ("fast", "a/flash")


def test_work_that_needs_no_reasoning_stays_out_of_the_reasoning_slot():
    assert chosen(MIDDLING, AgentConfig(routing=REASONING)) == ("primary", "a/standard")


# Policies of one's own


def test_a_policy_of_ones_own_changes_the_map_and_the_moves():
    mine = policy_with("mine", {"tiers": {"juggling": "premium"}, "moves": {"unknown": {}}})

    assert decide(options=named("juggling"), policy=mine).policy == f"mine/{current_policy().version}"
    assert chosen(options=named("juggling"), policy=mine) == ("escalation", "a/premium")
    assert chosen(EASY, policy=mine) == ("primary", "a/standard")
    assert chosen(options=named("sentiment"), policy=mine) == ("fast", "a/flash")


def test_the_levels_of_a_policy_come_before_the_classifiers():
    strict = policy_with("strict", {"levels": {"moderate": 0.0, "complex": 0.0}})

    assert strict.assess(EASY) == current_policy().assess(EASY).model_copy(update={"level": "complex"})
