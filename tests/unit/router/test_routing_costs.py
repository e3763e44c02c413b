"""Which model takes a job when money counts: budgets, a warm cache, and what is predicted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.events import Warm
from wayline.contracts.jobs import JobOptions, SubmitJob
from wayline.llm.thinking import REASONING_TOKENS
from wayline.router.estimate import THINKING_TOKENS, expected, first_call, shape_of, span

from .routed import (
    CARDS,
    EASY,
    FLASH,
    HARD,
    MIDDLING,
    PREMIUM,
    PROOF,
    REASONING,
    STANDARD,
    THINKER,
    card,
    chosen,
    decide,
    named,
)

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
    thought = REASONING_TOKENS if reasoning == "budget" else THINKING_TOKENS["simple"]

    def dearer(of: Callable[..., Any]) -> Decimal:
        """How many tokens of output the slot adds."""
        return (of(thinker, shape, slot="reasoning") - of(thinker, shape, slot="primary")) / Decimal("0.00004")

    assert dearer(expected) == thought
    assert dearer(first_call) == REASONING_TOKENS
    assert dearer(lambda *args, **slot: span(*args, **slot)[1]) == REASONING_TOKENS
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
