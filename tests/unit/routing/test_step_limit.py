"""A step limit that follows a job's complexity, within the cap."""

from __future__ import annotations

from decimal import Decimal

import pytest

from wayline.contracts.agents import AgentConfig
from wayline.contracts.jobs import Fork, JobOptions, SubmitJob
from wayline.contracts.models import ModelCard, Prices, Rates
from wayline.routing import RoutingInput, choose_limits, choose_route
from wayline.routing.step_limit import ADAPTED_STEPS_MIN, adapted

HELLO = "hello"
PROOF = (
    "Prove that the algorithm terminates, derive its complexity step by step, compare it with three alternatives, "
    "evaluate the trade-offs of each under concurrent load, and then design a migration plan with its risks. "
) * 4
CARD = ModelCard(
    provider="chat", model="m", tier="standard", prices=Prices(rates=Rates(input=Decimal(1), output=Decimal(2)))
)


def inputs(text: str, *, fork: bool = False, options: JobOptions | None = None, **config: object) -> RoutingInput:
    job = SubmitJob(agent="a", input=text, options=options or JobOptions(), fork=Fork(job_id="j") if fork else None)
    return RoutingInput(job, AgentConfig.model_validate({"adapt_steps": True, "max_steps": 10, **config}))


@pytest.mark.parametrize(
    ("cap", "simple", "moderate", "complex_"),
    [(1, 1, 1, 1), (2, 2, 2, 2), (3, 2, 3, 3), (5, 2, 4, 5), (10, 4, 7, 10), (1_000, 400, 700, 1_000)],
)
def test_a_jobs_share_is_rounded_up_and_never_above_the_cap(cap: int, simple: int, moderate: int, complex_: int):
    assert (adapted(cap, "simple"), adapted(cap, "moderate"), adapted(cap, "complex")) == (simple, moderate, complex_)
    assert adapted(cap, None) == cap
    assert simple >= min(cap, ADAPTED_STEPS_MIN)


def test_a_simple_job_gets_fewer_steps_than_a_complex_one():
    limits = [
        choose_limits(JobOptions(), one.config, steps_level=one.steps_level) for one in (inputs(HELLO), inputs(PROOF))
    ]

    assert [(one.max_steps, one.steps_cap, one.steps_level) for one in limits] == [
        (4, 10, "simple"),
        (10, 10, "complex"),
    ]


@pytest.mark.parametrize(
    "plain",
    [
        inputs(HELLO, adapt_steps=False),
        inputs(HELLO, options=JobOptions(max_steps=10)),
        inputs(HELLO, fork=True),
    ],
    ids=["off", "the job says", "a fork"],
)
def test_a_limit_that_follows_nothing_is_the_cap(plain: RoutingInput):
    limits = choose_limits(plain.job.options, plain.config, steps_level=plain.steps_level)

    assert (limits.max_steps, limits.steps_cap, limits.steps_level) == (10, None, None)


def test_the_most_that_a_job_can_cost_counts_its_own_steps():
    simple, capped = inputs(HELLO, model="chat/m"), inputs(HELLO, model="chat/m", adapt_steps=False)

    dearest = [choose_route(one, default_model="chat/m", cards=[CARD]).route for one in (simple, capped)]

    less, more = (route.estimated_cost_range_usd for route in dearest)
    assert less is not None and more is not None
    assert less[1] < more[1] / 2
