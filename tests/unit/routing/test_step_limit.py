"""A step limit that follows a job's complexity, within the cap."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from wayline.contracts.agents import AgentConfig
from wayline.contracts.events import JobRouted, SpanRef
from wayline.contracts.jobs import Fork, JobOptions, SubmitJob
from wayline.contracts.models import ModelCard, Prices, Rates
from wayline.routing import RoutingInput, choose_again, choose_limits, choose_route
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
    return RoutingInput(job, AgentConfig.model_validate({"max_steps": 10, **config}))


@pytest.mark.parametrize(
    ("cap", "simple", "moderate", "complex_"),
    [(1, 1, 1, 1), (2, 2, 2, 2), (3, 2, 3, 3), (5, 3, 4, 5), (10, 6, 8, 10), (1_000, 600, 800, 1_000)],
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
        (6, 10, "simple"),
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


def test_a_decision_is_repeated_with_the_step_limit_of_its_log():
    one = inputs(PROOF)
    decision = choose_route(one, default_model="offline/extractive", cards=[CARD])
    recorded = JobRouted(
        job_id="j1",
        seq=2,
        at=datetime(2026, 11, 25, tzinfo=UTC),
        trace=SpanRef(trace_id="t", span_id="s"),
        agent="a",
        agent_version=1,
        config=one.config,
        route=decision.route,
        limits=choose_limits(JobOptions(), one.config, steps_level=one.steps_level),
        candidates=decision.candidates,
        policy=decision.policy,
    )
    fewer = recorded.model_copy(update={"limits": recorded.limits.model_copy(update={"max_steps": 2})})

    same, cheaper = (choose_again(one.job, log, policy=one.policy).route for log in (recorded, fewer))

    assert same == decision.route
    dearest, most = same.estimated_cost_range_usd, cheaper.estimated_cost_range_usd
    assert dearest is not None and most is not None
    assert most[1] < dearest[1]
