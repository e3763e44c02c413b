"""What the router pins for a job whose type of task a flash model is going to be asked for."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.chat import Attachment, ImagePart, TextPart
from wayline.contracts.jobs import JobOptions, Route, SubmitJob
from wayline.contracts.models import MediaRules, ModelCard, Prices, Rates, Tier
from wayline.executor.decide.actions import Classify
from wayline.executor.decide.classification import question
from wayline.routing import Decision, RoutingInput, choose_route, current_policy

from ..executor.logs import Log

TEXT = "Write a Python function that returns the second largest number of a list."
ASKING = AgentConfig(classify=True)


def card(name: str, tier: Tier, usd: str | None, **what: Any) -> ModelCard:
    provider, _, model = name.partition("/")
    rates = usd and Rates(input=Decimal(usd), output=Decimal(usd) * 5)
    return ModelCard(provider=provider, model=model, tier=tier, prices=Prices(rates=rates) if rates else None, **what)


LOCAL = card("offline/extractive", "flash", "0")
FLASH, STANDARD, PREMIUM = card("a/flash", "flash", "0.1"), card("a/standard", "standard", "2"), card(
    "a/premium", "premium", "4"
)  # fmt: skip
CARDS = (LOCAL, FLASH, STANDARD, PREMIUM)


def decide(
    config: AgentConfig = ASKING, text: Any = TEXT, cards: tuple[ModelCard, ...] = CARDS, **facts: Any
) -> Decision:
    options = facts.pop("options", JobOptions())
    job = SubmitJob(agent="a", input=text, options=options)
    away = facts.pop("away", None)
    return choose_route(RoutingInput(job, config, **facts), cards=cards, default_model="offline/extractive", away=away)


def bare(route: Route | None) -> dict[str, Any]:
    """A route without what the question adds to it."""
    assert route is not None
    return route.model_dump(exclude={"classifier", "reason", "estimated_cost_usd", "estimated_cost_range_usd"})


def test_an_unclassified_job_is_routed_as_one_of_unknown_type():
    asked, plain = decide(), decide(AgentConfig())

    assert asked.route.classifier == "a/flash"
    assert (asked.route.reason, bare(asked.route)) == (plain.route.reason, bare(plain.route))
    assert (plain.route.classifier, plain.candidates.tasks) == (None, {})


@pytest.mark.parametrize("reasoning", ["none", "adaptive", "effort"])
def test_the_classifiers_room_equals_the_executors_request(reasoning: Any):
    fast = card("a/flash", "flash", "0", reasoning=reasoning, output_limit=100_000)
    rates = Rates(input=Decimal(0), output=Decimal(1_000_000))
    dear = fast.model_copy(update={"prices": Prices(rates=rates)})
    cards, negotiation = (LOCAL, dear, STANDARD, PREMIUM), JobOptions(task_type="negotiation")
    room = question(Log().job, Classify(dear, ("drafting",)), attempt_id="a").max_output_tokens

    least = decide(AgentConfig(), cards=cards, options=negotiation).least_call_usd
    assert least is not None

    def classifier(usd: Decimal) -> str | None:
        return decide(cards=cards, options=JobOptions(budget_usd=usd)).route.classifier

    assert (classifier(least + room), classifier(least + room - 1)) == ("a/flash", None)


def test_every_classified_type_is_routed_like_the_named_type():
    tasks = decide().candidates.tasks

    assert list(tasks) == sorted(current_policy().tiers)
    for label, route in tasks.items():
        named = decide(AgentConfig(), options=JobOptions(task_type=label)).route
        assert (route is None) == (named.slot == "primary")
        assert route is None or bare(route) == bare(named)


def test_a_classified_route_names_the_classification_in_its_reason():
    route = decide().candidates.tasks["contract_review"]

    assert route is not None
    assert route.reason == (
        "it was classified as contract review, which is premium work, so the escalation slot takes it with a/premium"
    )


@pytest.mark.parametrize(
    "why",
    [
        {"options": JobOptions(task_type="drafting")},
        {"options": JobOptions(task_type="juggling")},
        {"options": JobOptions(model="a/standard")},
        {"config": AgentConfig(classify=True, task_type="drafting")},
        {"config": AgentConfig(classify=True, model="a/standard")},
        {"config": AgentConfig(classify=True, routing=Routing(mode="locked"))},
        {"config": AgentConfig()},
        {"text": (ImagePart(document_id="d"),), "cards": (*CARDS, card("b/seeing", "standard", "2", images=True))},
        {"text": "  "},
        {"cards": (LOCAL, STANDARD, PREMIUM)},
        {"cards": (LOCAL, card("a/flash", "flash", None), STANDARD, PREMIUM)},
        {
            "config": AgentConfig(
                classify=True, routing=Routing(fast="a/flash", primary="a/flash", escalation="a/flash")
            )
        },
    ],
    ids=[
        "the job names its type",
        "also one that the policy does not know",
        "the job names its model",
        "the agent names the type",
        "the agent names its model",
        "the agent is locked",
        "the agent does not want it",
        "there is no text",
        "there is nothing in the text",
        "no flash model can be asked",
        "nobody knows what asking costs",
        "no answer would change the model",
    ],
)
def test_no_classifier_is_asked_where(why: dict[str, Any]):
    decision = decide(**why)

    assert (decision.route.classifier, decision.candidates.tasks) == (None, {})


def test_the_classifier_is_pinned_even_outside_every_slot():
    routing = Routing(fast="a/standard", primary="a/standard")
    asked = decide(AgentConfig(classify=True, routing=routing))

    assert (asked.route.classifier, asked.candidates.slots["fast"]) == ("a/flash", "a/standard")
    assert asked.candidates.card("a/flash") == FLASH


def test_the_agents_own_flash_model_is_asked_before_the_catalogues():
    own = card("b/mine", "flash", "0.2")
    asked = decide(AgentConfig(classify=True, routing=Routing(fast="b/mine")), cards=(*CARDS, own))

    assert asked.route.classifier == "b/mine"


def test_a_type_whose_tier_is_empty_refuses_no_job():
    tasks = decide(cards=(LOCAL, FLASH, STANDARD)).candidates.tasks

    assert tasks["negotiation"] is None
    assert tasks["sentiment"] is not None


def test_a_type_of_an_empty_tier_goes_one_tier_up():
    """As a backtest decides it, which knows only the models that were recorded."""
    asked = decide(text="Hello, are you there?", cards=(LOCAL, FLASH, PREMIUM))
    route = asked.candidates.tasks["drafting"]

    assert (asked.route.name, route and route.name) == ("a/flash", "a/premium")


def test_a_model_that_is_away_neither_classifies_nor_takes_jobs():
    other = card("b/flash", "flash", "0.2")
    asked = decide(cards=(*CARDS, other), away={"a/flash": "keeps failing"})
    away = decide(away={"a/premium": "keeps failing"})

    assert asked.route.classifier == "b/flash"
    assert decide(away={"a/flash": "keeps failing"}).route.classifier is None
    assert away.candidates.tasks["negotiation"] is None, "it stays on the primary"


def test_an_answer_leads_to_a_model_that_takes_the_jobs_images():
    photo = Attachment(
        document_id="d", name="d", media_type="image/png", sha256="a" * 64, size_bytes=9, width=280, height=280
    )
    job = (TextPart(text=TEXT), ImagePart(document_id="d"))
    seeing = card("b/seeing", "premium", "5", images=True, media=MediaRules(patches_max=100))
    able = STANDARD.model_copy(update={"images": True, "media": MediaRules(patches_max=100)})
    asked = decide(text=job, cards=(LOCAL, FLASH, able, PREMIUM, seeing), attachments=(photo,))

    tasks = asked.candidates.tasks
    assert (asked.route.classifier, asked.route.name) == ("a/flash", "a/standard")
    assert tasks["negotiation"] is not None and tasks["negotiation"].name == "b/seeing"
    assert tasks["sentiment"] is None, "the flash model takes no images"


def test_no_classifier_is_asked_if_the_first_call_becomes_unpayable():
    call_usd = decide(AgentConfig()).least_call_usd
    assert call_usd is not None

    enough, short = (
        decide(options=JobOptions(budget_usd=call_usd + more)).route for more in (Decimal("0.001"), Decimal("0.00001"))
    )

    assert (enough.classifier, enough.name) == ("a/flash", "a/standard")
    assert (short.classifier, short.name) == (None, "a/standard")


def test_no_classification_leads_to_a_call_beyond_the_remaining_money():
    dearer = decide(AgentConfig(), options=JobOptions(task_type="negotiation")).least_call_usd
    assert dearer is not None

    tasks = decide(options=JobOptions(budget_usd=dearer + Decimal("0.00001"))).candidates.tasks
    more = decide(options=JobOptions(budget_usd=dearer + Decimal("0.001"))).candidates.tasks

    assert (tasks["negotiation"], more["negotiation"] is None) == (None, False)
    assert tasks["sentiment"] is not None


def test_the_predicted_range_covers_every_classification():
    asked, plain = decide().route, decide(AgentConfig()).route
    routes = [route for route in decide().candidates.tasks.values() if route is not None]

    assert asked.estimated_cost_usd is not None and plain.estimated_cost_usd is not None
    assert 0 < asked.estimated_cost_usd - plain.estimated_cost_usd < Decimal("0.0001")
    assert asked.estimated_cost_range_usd is not None
    least, most = asked.estimated_cost_range_usd
    for route in routes:
        assert route.estimated_cost_range_usd is not None
        assert least <= route.estimated_cost_range_usd[0] and route.estimated_cost_range_usd[1] <= most


def test_the_jobs_budget_caps_the_range_of_every_answer():
    asked = decide(options=JobOptions(budget_usd=Decimal("0.05"))).route

    assert asked.estimated_cost_range_usd is not None
    assert asked.estimated_cost_range_usd[1] == Decimal("0.05")


def test_no_classification_leads_to_an_unknown_price_under_a_budget():
    tasks = decide(cards=(LOCAL, FLASH, STANDARD, card("a/premium", "premium", None))).candidates.tasks

    assert tasks["negotiation"] is None
