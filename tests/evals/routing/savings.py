"""What routing saves against sending everything to one tier, on a stated mix of tasks at the catalogue's prices.

python tests/evals/routing/savings.py [--provider anthropic]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from decimal import Decimal
from typing import Any

from data import HERE

from wayline.contracts.agents import AgentConfig
from wayline.contracts.jobs import JobOptions, SubmitJob
from wayline.contracts.models import ModelCard
from wayline.router.estimate import Shape, expected
from wayline.router.policy import Policy, named
from wayline.router.routing import choose_route

POLICIES = ("all-standard", "all-premium", "current")


def routed(job: dict[str, Any], cards: tuple[ModelCard, ...], policy: Policy) -> tuple[str, Decimal]:
    """The tier that a job goes to, and what that costs; the sizes are those of the mix, not the router's guess."""
    submitted = SubmitJob(agent="a", input=job["text"], options=JobOptions(task_type=job["type"]))
    route = choose_route(submitted, AgentConfig(), cards=cards, default_model="offline/extractive", policy=policy).route
    card = next(card for card in cards if card.name == route.name)
    shape = Shape(
        prompt_tokens=job["prompt"],
        output_tokens=job["output"],
        output_max=job["output"],
        steps=job["steps"],
        steps_max=job["steps"],
        has_tools=True,
    )
    usd = expected(card, shape)
    assert usd is not None, f"{card.name} has no price"
    return route.tier, usd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", default="anthropic")
    provider = parser.parse_args().provider
    from wayline.llm.catalogue import bundled

    cards = tuple(card for card in bundled() if card.provider == provider)
    if not cards:
        sys.exit(f"no models of {provider!r} in the catalogue")
    mix = json.loads((HERE / "mix.json").read_text())
    print(f"{provider}, as long as the mix says")
    compare(mix["jobs"], cards)
    print(f"{provider}, all of one size: the usual where instructions and tools are most of each prompt")
    compare([job | mix["one_size"] for job in mix["jobs"]], cards)


def compare(jobs: list[dict[str, Any]], cards: tuple[ModelCard, ...]) -> None:
    """Print what each policy costs and where it sends the jobs."""
    standard = Decimal(0)
    for name in POLICIES:
        policy = named(name)
        assert policy is not None
        tiers: Counter[str] = Counter()
        total = Decimal(0)
        for job in jobs:
            tier, usd = routed(job, cards, policy)
            tiers[tier] += job["share"]
            total += usd * job["share"]
        standard = standard or total
        share = ", ".join(f"{n} {tier}" for tier, n in tiers.most_common())
        print(f"  {name:14s} ${total:.4f} for a hundred jobs, {1 - total / standard:.0%} saved; {share}")


if __name__ == "__main__":
    main()
