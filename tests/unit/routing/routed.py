"""Models of every tier, goals from easy to hard, and what the router makes of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.jobs import JobOptions, SubmitJob
from wayline.contracts.models import CacheRules, ModelCard, Prices, Rates, Tier
from wayline.routing import Decision, RoutingInput, choose_route

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
    own_default: str | None = None,
    away: dict[str, str] | None = None,
    **facts: Any,
) -> Decision:
    job = SubmitJob(agent="a", input=text, options=options or JobOptions())
    inputs = RoutingInput(job, config or AgentConfig(), default_model=own_default, **facts)
    return choose_route(inputs, cards=cards, default_model=default_model, away=away)


def chosen(*args: Any, **kwargs: Any) -> tuple[str, str]:
    route = decide(*args, **kwargs).route
    return route.slot, route.name


def named(task_type: str) -> JobOptions:
    return JobOptions(task_type=task_type)
