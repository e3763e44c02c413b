"""Which model takes a job: one test a rule, then what holds for all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.chat import Attachment, FilePart, ImagePart, TextPart
from wayline.contracts.errors import Reject
from wayline.contracts.events import Away, Candidates, JobRouted, SpanRef, Warm
from wayline.contracts.jobs import Complexity, JobOptions, Route, SubmitJob
from wayline.contracts.models import CacheRules, ModelCard, Prices, Rates, Tier
from wayline.llm.thinking import REASONING_TOKENS
from wayline.router.attachments import naming
from wayline.router.decision import Decision
from wayline.router.estimate import THINKING_TOKENS, expected, first_call, shape_of, span
from wayline.router.policy import Policy, current, overridden
from wayline.router.policy import named as policy_named
from wayline.router.routing import choose_again, choose_limits, choose_route
from wayline.router.rules import Asked

OFFLINE = "offline/extractive"
EASY = "Hello, are you there?"
MIDDLING = "Write a Python function that returns the second largest number of a list."
HARD = (
    "Coordinate the launch across legal, sales and engineering: list the dependencies, find the critical path, and say "
    "what must be decided first if the certificate arrives two weeks later than the others."
)
PROOF = "Prove by induction that the sum of the first n odd numbers is n squared, and where the proof would fail."


def card(name: str, tier: Tier, usd: str | None = "1", **what: Any) -> ModelCard:
    provider, _, model = name.partition("/")
    rates = usd and Rates(input=Decimal(usd), output=Decimal(usd) * 5, cache_read=Decimal(usd) / 10)
    return ModelCard(
        provider=provider,
        model=model,
        tier=tier,
        prices=Prices(rates=rates) if rates else None,
        **{"cache": CacheRules(kind="automatic"), "output_limit": 64_000, **what},
    )


FLASH, STANDARD, PREMIUM = (
    card("a/flash", "flash", "0.1"),
    card("a/standard", "standard", "2"),
    card("a/premium", "premium", "4"),
)
THINKER = card("a/thinker", "reasoning", "8")
SEEING = card("b/seeing", "premium", "5", images=True)
LOCAL = card(OFFLINE, "flash", "0")
CARDS = (LOCAL, FLASH, STANDARD, PREMIUM, SEEING, THINKER)
REASONING = Routing(reasoning="reasoning")


def decide(
    text: str | tuple = MIDDLING,
    config: AgentConfig | None = None,
    *,
    options: JobOptions | None = None,
    cards: tuple[ModelCard, ...] = CARDS,
    default_model: str = OFFLINE,
    away: dict[str, str] | None = None,
    **facts: Any,
) -> Decision:
    job = SubmitJob(agent="a", input=text, options=options or JobOptions())
    asked = Asked(job, config or AgentConfig(), **facts)
    return choose_route(asked, cards=cards, default_model=default_model, away=away)


def chosen(*args: Any, **kwargs: Any) -> tuple[str, str]:
    route = decide(*args, **kwargs).route
    return route.slot, route.name


def named(task_type: str) -> JobOptions:
    return JobOptions(task_type=task_type)


# Who is asked first


def test_the_jobs_own_wish_comes_before_its_agents_and_pins_one_card():
    agent = AgentConfig(model="a/standard", routing=Routing(fallbacks=("b/seeing",)))

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
        policy=current().label,
        first_call_usd=Decimal("0.082252000"),
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


def test_where_only_the_offline_model_is_there_it_takes_everything_and_the_reason_says_so():
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
        policy=current().label,
        first_call_usd=Decimal(0),
    )


def test_a_default_model_that_somebody_chose_takes_jobs_that_name_none():
    route = decide(default_model="chat/mine").route

    assert (route.name, route.tier, route.estimated_cost_usd) == ("chat/mine", "standard", None)
    assert chosen(config=AgentConfig(routing=Routing(primary="a/premium")), default_model="chat/mine")[1] == "a/premium"


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
def test_the_type_of_task_says_the_tier(task_type, tier):
    assert decide(options=named(task_type)).route.tier == tier


def test_a_known_type_is_the_whole_reason():
    assert decide(options=named("negotiation")).route == Route(
        provider="a",
        model="premium",
        tier="premium",
        slot="escalation",
        reason="negotiation is premium work, so the escalation slot takes it with a/premium",
        task_type="negotiation",
        complexity=current().assess(MIDDLING),
        estimated_cost_usd=decide(options=named("negotiation")).route.estimated_cost_usd,
        estimated_cost_range_usd=decide(options=named("negotiation")).route.estimated_cost_range_usd,
    )


def test_the_jobs_type_comes_before_the_agents():
    agent = AgentConfig(task_type="negotiation")

    assert decide(config=agent, options=named("sentiment")).route.tier == "flash"
    assert decide(config=agent).route.tier == "premium"


def test_a_type_that_nobody_knows_is_quoted():
    assert decide(options=named("juggling")).route.reason == (
        "'juggling' is no type of task that the policy knows, so the primary slot takes it with a/standard"
    )


def test_an_empty_tier_is_refused_and_the_error_says_what_to_configure():
    with pytest.raises(
        Reject, match=r"tier 'premium' can be reached: set the key .* PUT /v1/models, .*routing\.escalation"
    ) as told:
        decide(options=named("negotiation"), cards=(LOCAL, FLASH, STANDARD))

    assert (told.value.code, told.value.status) == ("empty_tier", 422)


def test_a_slot_names_a_model_or_a_tier_and_of_a_tier_the_first_model_counts():
    other = card("b/flash", "flash")
    agent = AgentConfig(routing=Routing(fast="b/flash", primary="premium", escalation="chat/mine"))

    assert decide(config=agent, cards=(*CARDS, other)).candidates.slots == {
        "fast": "b/flash",
        "primary": "a/premium",
        "escalation": "chat/mine",
    }
    assert chosen(options=named("sentiment"), cards=(*CARDS, other)) == ("fast", "a/flash")


def test_a_model_that_nobody_knows_has_one_tier_whichever_slots_name_it():
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


# How hard it looks


def test_unnamed_work_goes_where_its_complexity_says():
    assert chosen(EASY) == ("fast", "a/flash")
    assert chosen(MIDDLING) == ("primary", "a/standard")
    assert chosen(HARD) == ("escalation", "a/premium")


def test_the_reason_of_a_move_quotes_the_score():
    route = decide(HARD).route
    assert route.complexity is not None
    score = f"{route.complexity.score:.2f}"

    assert route.reason == (
        f"nobody has said what type of task it is, but it looks complex (score {score}), "
        "so the escalation slot takes it with a/premium"
    )


def test_standard_work_that_looks_complex_rises_and_flash_work_stays():
    assert chosen(HARD, options=named("drafting")) == ("escalation", "a/premium")
    assert chosen(HARD, options=named("sentiment")) == ("fast", "a/flash")
    assert chosen(EASY, options=named("negotiation")) == ("escalation", "a/premium")


def test_named_work_rises_only_where_its_words_are_very_clear():
    unsure = "Find companies in our documents that use Postgres and have more than 200 employees."
    seen = current().assess(unsure)
    assert seen.level == "complex" and seen.score < current().sure

    assert chosen(unsure, options=named("search")) == ("primary", "a/standard")
    assert chosen(unsure) == ("escalation", "a/premium")


def test_complexity_moves_nothing_to_a_slot_that_has_no_model():
    assert chosen(EASY, cards=(STANDARD,)) == ("primary", "a/standard")
    assert chosen(HARD, cards=(STANDARD,)) == ("primary", "a/standard")


# Reasoning


def test_reasoning_comes_after_the_other_rules_and_only_where_it_is_configured():
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


# What a model can take


def test_a_job_with_an_image_goes_to_the_first_model_of_its_tier_that_sees():
    image = (TextPart(text=HARD), ImagePart(document_id="d1"))

    assert chosen(image) == ("escalation", "b/seeing")


def test_where_no_model_of_the_slot_can_take_the_job_the_next_slot_up_does():
    route = decide((TextPart(text=MIDDLING), ImagePart(document_id="d1")), options=named("drafting")).route

    assert (route.slot, route.name) == ("escalation", "b/seeing")
    assert route.reason == (
        "drafting is standard work, but the primary slot has no model for 6215 tokens with images, "
        "so the escalation slot takes it with b/seeing"
    )


def test_a_prompt_that_is_too_long_for_a_window_passes_the_model_over():
    small = card("a/small", "standard", context_window=5_000)

    assert chosen("word " * 2_000, options=named("drafting"), cards=(FLASH, small, STANDARD)) == (
        "primary",
        "a/standard",
    )
    assert chosen(EASY, options=named("drafting"), cards=(FLASH, small, STANDARD)) == ("primary", "a/small")


def test_a_session_counts_with_the_prompt_it_has():
    small = card("a/small", "standard", context_window=20_000)
    warm = Warm(model="a/other", prefix_tokens=30_000)

    assert chosen(options=named("drafting"), cards=(small, STANDARD), warm=warm) == ("primary", "a/standard")


def test_a_job_that_no_model_can_take_is_refused():
    image = (TextPart(text="What is this?"), ImagePart(document_id="d1"))

    for config, options in [
        (AgentConfig(), JobOptions()),
        (AgentConfig(), JobOptions(model="a/standard")),
        (AgentConfig(model="a/standard"), JobOptions()),
        (AgentConfig(routing=Routing(mode="locked")), JobOptions()),
    ]:
        with pytest.raises(Reject, match="with images") as told:
            decide(image, config, options=options, cards=(FLASH, STANDARD, PREMIUM))
        assert told.value.code == "model_unfit"


def test_what_nobody_knows_of_a_model_is_no_reason_to_refuse_it_work():
    image = (TextPart(text="What is this?"), ImagePart(document_id="d1"))

    assert chosen(image, options=JobOptions(model="chat/mine"))[1] == "chat/mine"


# Whom nobody can call


def test_a_model_that_keeps_failing_is_passed_over_for_another_of_its_tier_and_the_reason_names_it():
    other = card("b/standard", "standard", "3")
    decision = decide(options=named("drafting"), cards=(*CARDS, other), away={"a/standard": "keeps failing"})

    assert (decision.route.slot, decision.route.name) == ("primary", "b/standard")
    assert decision.route.reason == (
        "drafting is standard work, but a/standard keeps failing, so the primary slot takes it with b/standard"
    )
    assert decision.away == (Away(slot="primary", model="a/standard", why="keeps failing"),)


def test_a_slot_of_which_nobody_can_be_called_leaves_the_job_to_the_next_one_up_then_down():
    asked = "asked to be left alone for 42 s"
    up = decide(options=named("drafting"), away={"a/standard": asked})
    down = decide(options=named("negotiation"), away={"a/premium": asked, "b/seeing": asked})

    assert (up.route.slot, up.route.name) == ("escalation", "a/premium")
    assert f"but a/standard {asked}, so the escalation slot" in up.route.reason
    assert up.candidates.slots["primary"] == "a/standard", "it may be there again when the job needs it"
    assert (down.route.slot, down.route.name) == ("primary", "a/standard")


def test_a_reasoning_model_that_keeps_failing_is_passed_over_and_named():
    route = decide(PROOF, AgentConfig(routing=REASONING), away={"a/thinker": "keeps failing"}).route

    assert (route.slot, route.name) == ("escalation", "a/premium")
    assert "it needs reasoning" in route.reason and "where a/thinker keeps failing" in route.reason


def test_where_everybody_is_away_nobody_is_passed_over():
    everybody = {each.name: "keeps failing" for each in CARDS}

    assert decide(options=named("drafting"), away=everybody) == decide(options=named("drafting"))


def test_a_locked_agent_and_one_of_one_model_keep_it_though_it_keeps_failing():
    away = {"a/standard": "keeps failing"}

    assert decide(config=AgentConfig(routing=Routing(mode="locked")), away=away).route.name == "a/standard"
    assert decide(config=AgentConfig(model="a/standard"), away=away).route.name == "a/standard"
    assert decide(options=JobOptions(model="a/standard"), away=away).route.name == "a/standard"


def test_money_and_a_warm_cache_lead_to_nobody_who_is_away():
    away = {"a/standard": "keeps failing", "a/premium": "keeps failing", "b/seeing": "keeps failing"}

    assert (
        chosen(options=named("drafting"), warm=Warm(model="a/premium", prefix_tokens=60_000), away=away)[1] == "a/flash"
    )
    less = {"a/standard": "keeps failing"}
    assert chosen(options=named("negotiation"), left_usd=Decimal("0.05"), away=less)[1] == "a/flash"


# Money


def test_a_budget_that_is_nearly_used_up_takes_the_next_slot_down_that_it_can_pay():
    route = decide(options=named("negotiation"), left_usd=Decimal("0.05")).route

    assert (route.slot, route.name) == ("primary", "a/standard")
    assert route.reason == (
        "negotiation is premium work, but one call in the escalation slot can cost $0.0823 and the budgets leave "
        "$0.05, so the primary slot takes it with a/standard"
    )
    assert chosen(options=named("negotiation"), left_usd=Decimal("0.01")) == ("fast", "a/flash")
    assert chosen(options=named("negotiation"), left_usd=Decimal(1)) == ("escalation", "a/premium")


def test_where_nothing_can_be_paid_the_cheapest_slot_goes_on_until_the_cap():
    assert chosen(options=named("negotiation"), left_usd=Decimal("0.000001")) == ("fast", "a/flash")


def test_the_jobs_own_budget_counts_like_any_other():
    assert chosen(options=JobOptions(task_type="negotiation", budget_usd=Decimal("0.05"))) == ("primary", "a/standard")


def test_an_agent_may_not_care_about_the_budget():
    agent = AgentConfig(routing=Routing(budget_aware=False))

    assert chosen(config=agent, options=named("negotiation"), left_usd=Decimal("0.001")) == ("escalation", "a/premium")


def test_a_model_of_unknown_price_is_left_for_one_that_the_budget_can_pay():
    unknown = card("a/unknown", "premium", None)
    cards = (FLASH, STANDARD, unknown)

    assert chosen(options=named("negotiation"), cards=cards, left_usd=Decimal(1)) == ("primary", "a/standard")
    assert chosen(options=named("negotiation"), cards=cards) == ("escalation", "a/unknown")
    assert chosen(options=named("negotiation"), cards=(unknown,), left_usd=Decimal(1)) == ("escalation", "a/unknown")


def test_what_any_job_may_cost_keeps_no_unknown_price_out():
    unknown = card("a/unknown", "standard", None)
    cards, cap = (FLASH, unknown, PREMIUM), Decimal("0.05")

    assert chosen(options=named("drafting"), cards=cards, cap_usd=cap) == ("primary", "a/unknown")
    assert chosen(options=named("drafting"), cards=cards, cap_usd=cap, left_usd=Decimal(1)) == ("fast", "a/flash")
    assert chosen(options=named("negotiation"), cards=cards, cap_usd=cap) == ("fast", "a/flash")


def test_a_dearer_model_that_is_worse_changes_nothing_but_the_bill():
    """Slots say who is better. A trap in the catalogue costs money, and moves no job that money does not bind."""
    trap = (card("a/flash", "flash", "90"), card("a/standard", "standard", "20"), card("a/premium", "premium", "1"))

    for text in (EASY, MIDDLING, HARD):
        for task in (None, "sentiment", "drafting", "negotiation"):
            fair, trapped = (decide(text, options=JobOptions(task_type=task), cards=c).route for c in (CARDS, trap))
            assert (fair.slot, fair.name, fair.reason) == (trapped.slot, trapped.name, trapped.reason)
    assert chosen(EASY, AgentConfig(routing=Routing(fast="a/premium")), cards=trap) == ("fast", "a/premium")


def test_a_budget_never_takes_a_lower_slot_that_costs_more():
    trap = (card("a/flash", "flash", "90"), card("a/standard", "standard", "2"))

    assert chosen(options=named("drafting"), cards=trap, left_usd=Decimal("0.001")) == ("primary", "a/standard")


# A warm cache


def test_a_warm_cache_is_not_left_for_a_model_that_costs_more_without_it():
    warm = Warm(model="a/premium", prefix_tokens=60_000)
    route = decide(options=named("drafting"), warm=warm).route

    assert (route.slot, route.name) == ("escalation", "a/premium")
    assert route.reason.startswith(
        "drafting is standard work, but 60000 tokens are warm in the cache of a/premium, which makes staying $0."
    )


def test_a_warm_cache_is_left_where_that_is_cheaper_all_the_same():
    assert chosen(EASY, warm=Warm(model="a/premium", prefix_tokens=60_000)) == ("fast", "a/flash")
    assert chosen(options=named("drafting"), warm=Warm(model="a/premium", prefix_tokens=500)) == (
        "primary",
        "a/standard",
    )


def test_a_warm_cache_keeps_no_job_below_what_it_needs():
    assert chosen(HARD, warm=Warm(model="a/flash", prefix_tokens=900_000 // 9)) == ("escalation", "a/premium")


# What it will cost


def test_a_model_costs_no_more_than_it_can_write_at_once():
    short = STANDARD.model_copy(update={"output_limit": 50})
    shape = shape_of(SubmitJob(tenant="acme", agent="a", input="hi"), AgentConfig(tools=()))

    wordless = short.model_copy(update={"output_limit": 1})
    assert (
        first_call(short, shape) == first_call(STANDARD, replace(shape, output_max=50)) != first_call(STANDARD, shape)
    )
    assert (expected(wordless, shape) or 0) < (expected(short, shape) or 0) < (expected(STANDARD, shape) or 0)


def test_a_dry_run_knows_what_is_expected_and_the_range():
    route = decide(EASY, AgentConfig(tools=(), max_output_tokens=1_000)).route

    assert route.estimated_cost_usd == Decimal("0.000075600")
    assert route.estimated_cost_range_usd == (Decimal("0.000010600"), Decimal("0.000504800"))


@pytest.mark.parametrize("reasoning", ["budget", "adaptive", "effort"])
def test_what_the_reasoning_slot_thinks_is_part_of_every_prediction(reasoning):
    thinker = THINKER.model_copy(update={"reasoning": reasoning})
    shape = shape_of(SubmitJob(tenant="acme", agent="a", input=PROOF), AgentConfig(tools=()), level="simple")
    by_number = reasoning == "budget"
    thought, allowed = (REASONING_TOKENS, REASONING_TOKENS) if by_number else (THINKING_TOKENS["simple"], 0)

    def dearer(of: Callable[..., Any]) -> Decimal:
        """How many tokens of output the slot adds."""
        return (of(thinker, shape, slot="reasoning") - of(thinker, shape, slot="primary")) / Decimal("0.00004")

    assert dearer(expected) == thought
    assert dearer(first_call) == allowed
    assert dearer(lambda *args, **slot: span(*args, **slot)[1]) == allowed
    plain = THINKER.model_copy(update={"reasoning": "none"})
    assert expected(plain, shape, slot="reasoning") == expected(plain, shape)


def test_a_job_in_the_reasoning_slot_is_predicted_with_its_thinking():
    thinker = THINKER.model_copy(update={"reasoning": "budget"})
    route = decide(PROOF, AgentConfig(routing=REASONING, tools=()), cards=(*CARDS[:-1], thinker)).route

    assert route.slot == "reasoning"
    assert route.estimated_cost_usd is not None and route.estimated_cost_range_usd is not None
    assert route.estimated_cost_usd > REASONING_TOKENS * Decimal("0.00004")
    assert route.estimated_cost_range_usd[1] > (REASONING_TOKENS + 4_096) * Decimal("0.00004")


def test_a_reasoning_model_that_the_jobs_own_limit_cannot_pay_is_passed_over_and_the_setting_is_named():
    agent, working = AgentConfig(routing=REASONING, tools=()), AgentConfig(routing=REASONING)
    tenth = Decimal("0.10")
    route = decide(PROOF, agent, cap_usd=tenth).route

    assert (route.slot, route.name) == ("escalation", "a/premium")
    assert (
        "one call in the reasoning slot can cost $0.1647 and the job may spend $0.1 (the default, "
        "WAYLINE_ROUTER_JOB_BUDGET_USD; options.budget_usd sets another)," in route.reason
    )
    its_own = decide(PROOF, agent, options=JobOptions(budget_usd=tenth), cap_usd=tenth, left_usd=tenth).route
    assert "and the job may spend $0.1 (its own options.budget_usd)," in its_own.reason
    for_each_job = decide(PROOF, agent, cap_usd=tenth, left_usd=tenth).route
    assert "and the budgets leave $0.1," in for_each_job.reason
    assert chosen(PROOF, agent, cap_usd=Decimal("0.20"))[0] == "reasoning"
    long = decide(PROOF, working, cap_usd=Decimal("0.20")).route
    assert re.search(
        r"the work would cost about \$0\.2\d+ in the reasoning slot and the job may spend \$0\.2 ", long.reason
    )
    by_the_tenant = decide(PROOF, agent, cap_usd=Decimal("0.20"), left_usd=Decimal("0.10")).route
    assert "and the budgets leave $0.1," in by_the_tenant.reason


def test_the_jobs_budget_caps_the_range():
    route = decide(options=JobOptions(budget_usd=Decimal("0.05"))).route

    assert route.estimated_cost_range_usd is not None
    assert route.estimated_cost_range_usd[1] == Decimal("0.05")


# Of all of them

text = st.one_of(st.text(max_size=60), st.sampled_from([EASY, MIDDLING, HARD, PROOF]))
names = st.sampled_from(["a/flash", "a/premium", "b/seeing", "chat/mine", "flash", "standard", "premium", "reasoning"])
maybe = st.none() | names
seldom = st.sampled_from([None] * 9 + ["a/premium"])
routings = st.builds(
    Routing,
    mode=st.sampled_from(["auto", "auto", "auto", "locked"]),
    fast=maybe,
    primary=maybe,
    escalation=maybe,
    reasoning=maybe,
    fallbacks=st.lists(names, max_size=2).map(tuple),
    budget_aware=st.booleans(),
)
tasks = st.none() | st.sampled_from(["sentiment", "drafting", "negotiation", "juggling"])
dollars = st.none() | st.decimals(min_value=0, max_value=1, places=4)


def described(document_id: str, media_type: str, **more: Any) -> Attachment:
    about = {"name": document_id, "sha256": "a" * 64, "size_bytes": 400}
    return Attachment(document_id=document_id, media_type=media_type, **about, **more)


DESCRIBED = {
    "d": described("d", "image/png", width=280, height=560),
    "p": described("p", "text/plain", text_bytes=40_000),
}


@st.composite
def inputs(draw: st.DrawFn) -> dict[str, Any]:
    parts = draw(text) if draw(st.booleans()) else (TextPart(text=draw(text)), ImagePart(document_id="d"))
    pinned = draw(st.sampled_from([(), (FilePart(document_id="p"),)]))
    job = SubmitJob(
        agent="a",
        input=parts,
        options=JobOptions(task_type=draw(tasks), budget_usd=draw(dollars), model=draw(seldom)),
    )
    config = AgentConfig(
        model=draw(seldom),
        routing=draw(routings),
        max_steps=draw(st.integers(1, 1_000)),
        classify=draw(st.booleans()),
        pinned=pinned,
    )
    known = tuple(DESCRIBED[part.document_id] for part in naming((*pinned, *job.parts())))
    asked = Asked(
        job,
        config,
        left_usd=draw(dollars),
        cap_usd=draw(dollars),
        warm=draw(st.none() | st.builds(Warm, model=names, prefix_tokens=st.integers(0, 100_000))),
        attachments=known if draw(st.booleans()) else (),
    )
    return {
        "asked": asked,
        "cards": draw(st.just(CARDS) | st.lists(st.sampled_from(CARDS), unique_by=lambda c: c.name).map(tuple)),
        "away": draw(st.dictionaries(st.sampled_from([each.name for each in CARDS]), st.just("keeps failing"))),
        "default_model": draw(st.sampled_from([OFFLINE, "chat/mine"])),
    }


@given(inputs())
def test_a_decision_is_pure_total_and_refuses_only_with_the_errors_it_names(given_):
    try:
        decision = choose_route(**given_)
    except Reject as told:
        assert told.code in {"invalid_model", "empty_tier", "model_unfit"}
        return

    assert decision == choose_route(**given_)
    route, candidates = decision.route, decision.candidates
    assert candidates.card(route.name) is not None
    assert all(candidates.card(name) for name in (*candidates.slots.values(), *candidates.fallbacks))
    assert route.reason and "\n" not in route.reason and not route.reason.endswith(".")


@given(inputs())
def test_what_was_recorded_is_decided_the_same_again(given_):
    try:
        decision = choose_route(**given_)
    except Reject:
        return
    asked = given_["asked"]
    job, config = asked.job, asked.config
    recorded = JobRouted(
        job_id="j1",
        seq=2,
        at=datetime(2026, 11, 22, tzinfo=UTC),
        trace=SpanRef(trace_id="t", span_id="s"),
        agent="a",
        agent_version=1,
        config=config,
        route=decision.route,
        limits=choose_limits(job.options, config).model_copy(update={"budget_usd": asked.cap_usd}),
        candidates=decision.candidates,
        policy=decision.policy,
        left_usd=asked.left_usd,
        warm=asked.warm,
        attachments=asked.attachments,
        away=decision.away,
    )
    read = JobRouted.model_validate_json(recorded.model_dump_json())

    assert choose_again(job, read, policy=current()).route == decision.route
    for label, meant in decision.candidates.tasks.items():
        assert choose_again(job, read, policy=current(), task_type=label).route == (meant or decision.route)
    for other in ("all-standard", "all-premium"):
        assert choose_again(job, read, policy=named_policy(other), task_type="negotiation").route.reason


def named_policy(name: str) -> Policy:
    policy = policy_named(name)
    assert policy is not None
    return policy


def test_a_policy_of_ones_own_changes_the_map_and_the_moves():
    mine = overridden("mine", {"tiers": {"juggling": "premium"}, "moves": {"unknown": {}}})

    assert decide(options=named("juggling"), policy=mine).policy == f"mine/{current().version}"
    assert chosen(options=named("juggling"), policy=mine) == ("escalation", "a/premium")
    assert chosen(EASY, policy=mine) == ("primary", "a/standard")
    assert chosen(options=named("sentiment"), policy=mine) == ("fast", "a/flash")


def test_the_levels_of_a_policy_come_before_the_classifiers():
    strict = overridden("strict", {"levels": {"moderate": 0.0, "complex": 0.0}})

    assert strict.assess(EASY) == Complexity(score=current().assess(EASY).score, level="complex")
