"""Which model takes a job when money counts: budgets, a warm cache, and what is predicted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.events import Observed, ToolsObserved, Warm
from wayline.contracts.jobs import JobOptions, SubmitJob
from wayline.llm.thinking import REASONING_TOKENS
from wayline.llm.tokens import WIRE_TOKENS_MAX
from wayline.routing.estimate import THINKING_TOKENS, expected, first_call, least_call, shape_of, span

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


def test_a_nearly_used_up_budget_takes_the_next_payable_slot_down():
    route = decide(options=named("negotiation"), left_usd=Decimal("0.05")).route

    assert (route.slot, route.name) == ("primary", "a/standard")
    assert route.reason == (
        "negotiation is premium work, but one call in the escalation slot can cost $0.0823 and the budgets leave "
        "$0.05, so the primary slot takes it with a/standard"
    )
    assert chosen(options=named("negotiation"), left_usd=Decimal("0.01")) == ("fast", "a/flash")
    assert chosen(options=named("negotiation"), left_usd=Decimal(1)) == ("escalation", "a/premium")


def test_where_nothing_is_payable_the_cheapest_slot_takes_the_job():
    assert chosen(options=named("negotiation"), left_usd=Decimal("0.000001")) == ("fast", "a/flash")


def test_a_slot_is_payable_if_the_jobs_budget_pays_one_call():
    enough, less = (
        decide(options=JobOptions(task_type="negotiation", budget_usd=Decimal(usd))).route for usd in ("0.013", "0.012")
    )

    assert (enough.slot, less.slot) == ("escalation", "primary")
    assert (
        "one call in the escalation slot can cost $0.0124 and the job may spend $0.012 (its own options.budget_usd),"
        in less.reason
    )


def test_a_jobs_answer_length_is_payable_or_another_slot_takes_it():
    options = JobOptions(task_type="negotiation", max_output_tokens=4_096, budget_usd=Decimal("0.05"))

    assert chosen(options=options) == ("primary", "a/standard")
    assert chosen(options=options.model_copy(update={"max_output_tokens": 2_000})) == ("escalation", "a/premium")


def test_a_call_holds_what_its_cap_pays_or_its_least():
    shape = shape_of(SubmitJob(tenant="acme", agent="a", input="hi"), AgentConfig(tools=()))
    capped = replace(shape, cap_usd=Decimal("0.05"))
    poor = replace(shape, cap_usd=Decimal("0.001"))

    assert (first_call(PREMIUM, shape) or 0) > Decimal("0.05") >= (first_call(PREMIUM, capped) or 1) > Decimal("0.0499")
    assert first_call(PREMIUM, poor) == least_call(PREMIUM, poor), "not even what it needs: more than the cap"
    assert (least_call(PREMIUM, poor) or 0) > Decimal("0.001")


def test_an_agent_may_not_care_about_the_budget():
    agent = AgentConfig(routing=Routing(budget_aware=False))

    assert chosen(config=agent, options=named("negotiation"), left_usd=Decimal("0.001")) == ("escalation", "a/premium")


def test_under_a_budget_a_payable_model_replaces_an_unpriced_one():
    unknown = card("a/unknown", "premium", None)
    cards = (FLASH, STANDARD, unknown)

    assert chosen(options=named("negotiation"), cards=cards, left_usd=Decimal(1)) == ("primary", "a/standard")
    assert chosen(options=named("negotiation"), cards=cards) == ("escalation", "a/unknown")
    assert chosen(options=named("negotiation"), cards=(unknown,), left_usd=Decimal(1)) == ("escalation", "a/unknown")


def test_what_any_job_may_cost_keeps_no_unknown_price_out():
    unknown = card("a/unknown", "standard", None)
    cards, cap = (FLASH, unknown, PREMIUM), Decimal("0.01")

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


def test_a_warm_cache_is_kept_where_leaving_costs_more():
    warm = Warm(model="a/premium", prefix_tokens=60_000)
    route = decide(options=named("drafting"), warm=warm).route

    assert (route.slot, route.name) == ("escalation", "a/premium")
    assert route.reason.startswith(
        "drafting is standard work, but 60000 tokens are warm in the cache of a/premium, which makes staying $0."
    )


def test_a_warm_cache_is_left_where_that_is_cheaper():
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


TENTH = Decimal("0.10")


@pytest.mark.parametrize("tools", [(), ("*",)])
def test_a_proof_reaches_the_reasoning_slot_under_the_default_cap(tools: tuple[str, ...]):
    route = decide(PROOF, AgentConfig(routing=REASONING, tools=tools), cap_usd=TENTH).route

    assert (route.slot, route.name) == ("reasoning", "a/thinker")
    assert route.estimated_cost_usd is not None and route.estimated_cost_range_usd is not None
    assert route.estimated_cost_usd <= route.estimated_cost_range_usd[1] == TENTH


@pytest.mark.parametrize("task", ["negotiation", "contract_review"])
def test_work_with_tools_reaches_the_escalation_slot_under_the_default_cap(task: str):
    assert chosen(options=named(task), cap_usd=TENTH) == ("escalation", "a/premium")


def test_an_unpayable_reasoning_model_is_passed_over_naming_the_setting():
    agent, little = AgentConfig(routing=REASONING, tools=()), Decimal("0.02")
    route = decide(PROOF, agent, cap_usd=little).route

    assert (route.slot, route.name) == ("escalation", "a/premium")
    assert (
        "one call in the reasoning slot can cost $0.0249 and the job may spend $0.02 (the default, "
        "WAYLINE_ROUTER_JOB_BUDGET_USD; options.budget_usd sets another)," in route.reason
    )
    its_own = decide(PROOF, agent, options=JobOptions(budget_usd=little), cap_usd=little, left_usd=little).route
    assert "and the job may spend $0.02 (its own options.budget_usd)," in its_own.reason
    for_each_job = decide(PROOF, agent, cap_usd=little, left_usd=little).route
    assert "and the budgets leave $0.02," in for_each_job.reason
    by_the_tenant = decide(PROOF, agent, cap_usd=TENTH, left_usd=Decimal("0.05")).route
    assert "one call in the reasoning slot can cost $0.1 and the budgets leave $0.05," in by_the_tenant.reason


# What was observed

SEEN = Observed(model="a/thinker", slot="reasoning", jobs=8, calls=2, output_tokens=700, longest_tokens=1_000)


def test_what_recent_jobs_used_takes_the_place_of_every_guess():
    shape = shape_of(SubmitJob(tenant="acme", agent="a", input=PROOF), AgentConfig(), observed=(SEEN,))
    price = THINKER.prices and THINKER.prices.rates.output / 1_000_000
    assert price is not None

    seen, guessed = (expected(THINKER, shape, slot=slot) for slot in ("reasoning", "escalation"))
    more = expected(THINKER, replace(shape, observed={("a/thinker", "reasoning"): longer(1_700)}), slot="reasoning")

    assert seen is not None and guessed is not None and more is not None
    assert more - seen >= 2 * 1_000 * price, "two calls, each so many tokens longer"
    assert seen != guessed, "of the other slot nothing is known"


def test_a_slot_whose_observed_calls_exceed_the_cap_is_passed_over():
    agent = AgentConfig(routing=REASONING, tools=())

    assert decide(PROOF, agent, cap_usd=TENTH, observed=(SEEN,)).route.slot == "reasoning"
    passed = decide(PROOF, agent, cap_usd=TENTH, observed=(longer(100, longest=3_000),)).route
    assert passed.slot == "escalation"
    assert "one call in the reasoning slot can cost $0.1" in passed.reason


def test_a_slot_is_passed_over_for_observed_job_costs_only():
    agent = AgentConfig(routing=REASONING)
    many = longer(900).model_copy(update={"calls": 5})

    assert decide(PROOF, agent, cap_usd=TENTH).route.slot == "reasoning"
    passed = decide(PROOF, agent, cap_usd=TENTH, observed=(many,)).route
    assert re.search(
        r"the work would cost about \$0\.\d+ in the reasoning slot, as the agent's last 8 jobs there, and the job may "
        r"spend \$0\.1 ",
        passed.reason,
    )


def test_the_last_jobs_tool_definitions_count_in_the_first_call():
    shape, larger = (
        shape_of(SubmitJob(tenant="acme", agent="a", input="hi"), AgentConfig(), tools=tools)
        for tools in (None, ToolsObserved(count=43, tokens=6_000))
    )

    more = (least_call(STANDARD, larger) or 0) - (least_call(STANDARD, shape) or 0)
    assert more == Decimal(6_000 * 8 // 3 + 43 * WIRE_TOKENS_MAX) * 2 / 1_000_000
    assert decide(tools=ToolsObserved(count=0, tokens=0)).candidates.tools == ToolsObserved(count=0, tokens=0)


def longer(tokens: int, *, longest: int = 1_000) -> Observed:
    return SEEN.model_copy(update={"output_tokens": tokens, "longest_tokens": longest})


def test_the_jobs_budget_caps_the_range():
    route = decide(options=JobOptions(budget_usd=Decimal("0.05"))).route

    assert route.estimated_cost_range_usd is not None
    assert route.estimated_cost_range_usd[1] == Decimal("0.05")


def test_what_providers_counted_corrects_expectations_and_no_bound():
    seen = Observed(model="a/standard", slot="primary", jobs=9, calls=2, output_tokens=50, longest_tokens=90)
    plain, dense = (
        decide(HARD, AgentConfig(model="a/standard"), observed=(one,))
        for one in (seen, seen.model_copy(update={"density": 2.0}))
    )

    usd, more = plain.route.estimated_cost_usd, dense.route.estimated_cost_usd
    assert usd is not None and more is not None and usd < more
    assert dense.route.estimated_cost_range_usd == plain.route.estimated_cost_range_usd
    assert (dense.first_call_usd, dense.least_call_usd) == (plain.first_call_usd, plain.least_call_usd)
