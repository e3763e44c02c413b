"""Recorded jobs, decided again by another policy."""

from __future__ import annotations

from decimal import Decimal

import pytest

from wayline.routing import (
    STAYS,
    DecidedAgain,
    Policy,
    backtest_summary,
    current_policy,
    decide_again,
    named_policy,
    policy_with,
)

from .recorded_jobs import ASKED_USD, CARDS, card, recorded


def policy_named(name: str) -> Policy:
    policy = named_policy(name)
    assert policy is not None
    return policy


@pytest.mark.parametrize("task", [None, "sentiment", "drafting", "negotiation"])
def test_the_policy_that_decided_decides_the_same_again(task):
    told = decide_again(recorded(task, left_usd=Decimal("0.05")), current_policy())

    assert told is not None and told.same
    assert (told.was, told.was_usd) == (told.now, told.now_usd)


@pytest.mark.parametrize("answer", ["sentiment", "drafting", "negotiation", ""])
def test_a_job_that_was_classified_goes_the_same_way_again(answer: str):
    told = decide_again(recorded(None, classified=answer), current_policy())

    assert told is not None and told.same
    assert (told.was, told.was_usd) == (told.now, told.now_usd)
    assert told.was_tier == {"drafting": "standard", "negotiation": "premium"}.get(answer, "flash")


def test_a_redrive_stays_with_the_model_of_its_origin():
    log = recorded("sentiment")
    log[0]["job"]["fork"] = {"job_id": "j0"}
    log[1]["route"] |= {"model": "premium", "tier": "premium", "slot": "reasoning", "reason": STAYS}

    told = decide_again(log, current_policy())

    assert told is not None and told.same and told.now == "a/premium"


def test_a_policy_without_a_classifier_saves_the_classification_cost():
    told = decide_again(recorded(None, classified="drafting"), policy_named("locked"))

    assert told is not None and told.was_usd is not None and told.now_usd is not None
    assert (told.was, told.now, told.was_usd - told.now_usd) == ("a/standard", "a/standard", ASKED_USD)


def test_a_classification_of_unknown_usage_leaves_call_costs_unchanged():
    log = recorded(None, classified="drafting")
    log[2] |= {"cost_usd": None, "unsettled": {"lower_usd": "0", "upper_usd": "0.001"}}
    told, named = decide_again(log, current_policy()), decide_again(recorded("drafting"), current_policy())

    assert log[2]["type"] == "aux.completed"
    assert told is not None and named is not None and told.was_usd == named.was_usd


def test_another_policy_decides_by_what_a_classification_said():
    mine = policy_with("mine", {"tiers": {"negotiation": "standard"}})
    told = decide_again(recorded(None, classified="negotiation"), mine)

    assert told is not None
    assert (told.was, told.now, told.same) == ("a/premium", "a/standard", False)
    assert told.reason.startswith("it was classified as negotiation, which is standard work, so")


def test_another_policy_is_priced_by_recorded_usage():
    assert decide_again(recorded("sentiment"), policy_named("all-premium")) == DecidedAgain(
        job_id="j1",
        by=current_policy().label,
        was="a/flash",
        was_tier="flash",
        now="a/premium",
        now_tier="premium",
        reason="'sentiment' is no type of task that the policy knows, so the escalation slot takes it with a/premium",
        same=False,
        was_usd=Decimal("0.002280000"),
        now_usd=Decimal("0.091200000"),
    )


def test_an_answer_of_unknown_usage_is_in_neither_sum():
    log = recorded("sentiment")
    log[-1] |= {"usage": {}, "cost_usd": None, "unsettled": {"lower_usd": "0", "upper_usd": "1"}}
    told = decide_again(log, policy_named("all-premium"))

    assert told is not None
    assert (told.was_usd, told.now_usd) == (Decimal("0.001140000"), Decimal("0.045600000"))


def test_an_unknown_price_stays_unknown():
    told = decide_again(recorded("sentiment", cards=(CARDS[0], card("premium", None))), policy_named("all-premium"))

    assert told is not None
    assert (told.now, told.was_usd, told.now_usd) == ("a/premium", Decimal("0.002280000"), None)


def test_an_unrecorded_slot_falls_to_a_recorded_one():
    told = decide_again(recorded("sentiment", cards=CARDS[:1]), policy_named("all-premium"))

    assert told is not None and told.now == "a/flash"


def test_the_locked_policy_sends_everything_to_the_primary():
    for task in ("sentiment", "negotiation"):
        told = decide_again(recorded(task), policy_named("locked"))
        assert told is not None and told.now == "a/standard"


def test_a_log_without_a_route_is_left_out():
    assert decide_again(recorded(None)[:1], current_policy()) is None


def test_the_summary_adds_up_what_changes():
    decided = [
        one for task in ("sentiment", "drafting") if (one := decide_again(recorded(task), policy_named("all-standard")))
    ]

    assert backtest_summary(policy_named("all-standard"), decided) == {
        "policy": "all-standard/3",
        "jobs": 2,
        "same": 0,
        "decided_by": {current_policy().label: 2},
        "tiers": [{"was": "flash", "now": "standard", "jobs": 1}, {"was": "standard", "now": "standard", "jobs": 1}],
        "was_usd": "0.047880000",
        "now_usd": "0.091200000",
        "unknown_cost": 0,
        "changed": [
            {
                "job_id": "j1",
                "was": was,
                "now": "a/standard",
                "reason": f"'{task}' is no type of task that the policy knows, "
                "so the primary slot takes it with a/standard",
                "was_usd": usd,
                "now_usd": "0.045600000",
            }
            for task, was, usd in (
                ("sentiment", "a/flash", "0.002280000"),
                ("drafting", "a/standard", "0.045600000"),
            )
        ],
    }
