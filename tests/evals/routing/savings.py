"""What routing saves against sending everything to one tier, on a stated mix of tasks at the catalogue's prices.

python -m tests.evals.routing.savings [--provider anthropic]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from wayline.contracts.agents import AgentConfig
from wayline.contracts.jobs import JobOptions, SubmitJob
from wayline.contracts.models import ModelCard
from wayline.llm.catalogue import bundled
from wayline.routing import Policy, RoutingInput, choose_route, named_policy
from wayline.routing.estimate import Shape, expected

from .data import HERE

POLICIES = ("all-standard", "all-premium", "current")


def routed(job: dict[str, Any], cards: tuple[ModelCard, ...], policy: Policy) -> tuple[str, Decimal]:
    """The tier that a job goes to, and what that costs; the sizes are those of the mix, not the router's guess."""
    submitted = SubmitJob(agent="a", input=job["text"], options=JobOptions(task_type=job["type"]))
    inputs = RoutingInput(submitted, AgentConfig(), policy)
    route = choose_route(inputs, cards=cards, default_model="offline/extractive").route
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


@dataclass(frozen=True)
class Spent:
    """What a hundred jobs cost under a policy, and the tiers they went to."""

    usd: Decimal
    tiers: Mapping[str, int]
    by_tier: Mapping[str, Decimal]
    """Dollars of the jobs that went to each tier."""
    as_standard: Mapping[str, Decimal]
    """What the same jobs cost where all are standard."""


def spent(provider: str, *, one_size: bool) -> dict[str, Spent]:
    """By policy; with jobs as long as the mix says, or all of one size."""
    cards = tuple(card for card in bundled() if card.provider == provider)
    if not cards:
        sys.exit(f"no models of {provider!r} in the catalogue")
    mix = json.loads((HERE / "mix.json").read_text())
    jobs = [job | mix["one_size"] for job in mix["jobs"]] if one_size else mix["jobs"]
    return {name: _spent(jobs, cards, known(name)) for name in POLICIES}


def _spent(jobs: list[dict[str, Any]], cards: tuple[ModelCard, ...], policy: Policy) -> Spent:
    tiers = Counter[str]()
    by_tier, as_standard = defaultdict[str, Decimal](Decimal), defaultdict[str, Decimal](Decimal)
    for job in jobs:
        tier, usd = routed(job, cards, policy)
        tiers[tier] += job["share"]
        by_tier[tier] += usd * job["share"]
        as_standard[tier] += routed(job, cards, known("all-standard"))[1] * job["share"]
    return Spent(sum(by_tier.values(), Decimal(0)), tiers, by_tier, as_standard)


def known(name: str) -> Policy:
    policy = named_policy(name)
    assert policy is not None
    return policy


def saved(found: Mapping[str, Spent], policy: str = "current") -> Decimal:
    """The share of what all-standard costs."""
    return 1 - found[policy].usd / found["all-standard"].usd


def parts(one: Spent) -> list[str]:
    """Where the dollars of all-standard are, and what the same jobs cost as they are routed, by tier."""
    total = sum(one.as_standard.values(), Decimal(0))
    return [
        f"    {tier:9s} {one.tiers[tier]:3d} jobs, {usd / total:.0%} of all-standard's dollars, "
        f"which become {one.by_tier[tier] / total:.0%}"
        for tier, usd in one.as_standard.items()
    ]


def table(provider: str) -> str:
    lines = []
    for one_size, sizes in (
        (False, "as long as the mix says"),
        (True, "all of one size: the usual where instructions and tools are most of each prompt"),
    ):
        found = spent(provider, one_size=one_size)
        lines.append(f"savings, {provider}, {sizes}")
        for name, one in found.items():
            share = ", ".join(f"{n} {tier}" for tier, n in Counter(one.tiers).most_common())
            lines.append(f"  {name:14s} ${one.usd:.4f} for a hundred jobs, {saved(found, name):.0%} saved; {share}")
        lines += parts(found["current"])
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", default="anthropic")
    print(table(parser.parse_args().provider))


if __name__ == "__main__":
    main()
