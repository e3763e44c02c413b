"""Which models a job passes over: those that cannot take it, and those that nobody can call."""

from __future__ import annotations

from decimal import Decimal

import pytest

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.chat import ImagePart, TextPart
from wayline.contracts.errors import Reject
from wayline.contracts.events import Away, Warm
from wayline.contracts.jobs import JobOptions

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
    card,
    chosen,
    decide,
    named,
)

# What a model can take


def test_an_image_job_goes_to_its_tiers_first_model_with_vision():
    image = (TextPart(text=HARD), ImagePart(document_id="d1"))

    assert chosen(image) == ("escalation", "b/seeing")


def test_a_job_no_model_of_its_slot_can_take_goes_up():
    route = decide((TextPart(text=MIDDLING), ImagePart(document_id="d1")), options=named("drafting")).route

    assert (route.slot, route.name) == ("escalation", "b/seeing")
    assert route.reason == (
        "drafting is standard work, but the primary slot has no model for 6215 tokens with images, "
        "so the escalation slot takes it with b/seeing"
    )


def test_a_model_whose_window_is_too_small_is_passed_over():
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


def test_a_models_unknown_properties_do_not_refuse_a_job():
    image = (TextPart(text="What is this?"), ImagePart(document_id="d1"))

    assert chosen(image, options=JobOptions(model="chat/mine"))[1] == "chat/mine"


# Whom nobody can call


def test_a_failing_model_yields_to_another_and_the_reason_names_it():
    other = card("b/standard", "standard", "3")
    decision = decide(options=named("drafting"), cards=(*CARDS, other), away={"a/standard": "keeps failing"})

    assert (decision.route.slot, decision.route.name) == ("primary", "b/standard")
    assert decision.route.reason == (
        "drafting is standard work, but a/standard keeps failing, so the primary slot takes it with b/standard"
    )
    assert decision.away == (Away(slot="primary", model="a/standard", why="keeps failing"),)


def test_an_absent_slots_job_goes_one_slot_up_else_down():
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


def test_where_every_model_is_away_none_is_passed_over():
    everybody = {each.name: "keeps failing" for each in CARDS}

    assert decide(options=named("drafting"), away=everybody) == decide(options=named("drafting"))


def test_a_locked_agent_keeps_its_failing_model():
    away = {"a/standard": "keeps failing"}

    assert decide(config=AgentConfig(routing=Routing(mode="locked")), away=away).route.name == "a/standard"
    assert decide(config=AgentConfig(model="a/standard"), away=away).route.name == "a/standard"
    assert decide(options=JobOptions(model="a/standard"), away=away).route.name == "a/standard"


def test_money_and_a_warm_cache_lead_to_no_absent_model():
    away = {"a/standard": "keeps failing", "a/premium": "keeps failing", "b/seeing": "keeps failing"}

    assert (
        chosen(options=named("drafting"), warm=Warm(model="a/premium", prefix_tokens=60_000), away=away)[1] == "a/flash"
    )
    less = {"a/standard": "keeps failing"}
    assert chosen(options=named("negotiation"), left_usd=Decimal("0.05"), away=less)[1] == "a/flash"
