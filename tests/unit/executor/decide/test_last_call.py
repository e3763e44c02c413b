"""A model is told before the last call for which its job has steps, time and money."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from wayline.contracts.jobs import JobOptions
from wayline.executor.decide.last_call import last_turn

from ..logs import Log


@pytest.mark.parametrize(("step", "told"), [(1, False), (2, True)])
def test_the_last_call_is_told_that_it_must_answer(step: int, told: bool):
    log = Log(max_steps=3)
    for number in range(1, step + 1):
        log.ask(number).answer("Let me look.", "t").result()

    assert (last_turn(log.job) is not None) is told


def test_a_correction_is_the_last_calls_own_word():
    log = Log(max_steps=2).ask().answer("")

    assert last_turn(log.take(log.next).job) is None


@pytest.mark.parametrize(("left_s", "told"), [(60, False), (20, True)])
def test_the_last_call_in_time_is_told_that_it_must_answer(left_s: int, told: bool):
    job = Log().ask().answer("Let me look.", "t").result().job
    assert job.life.deadline is not None
    late = job._replace(at=job.life.deadline - timedelta(seconds=left_s))

    assert (last_turn(late) is not None) is told


@pytest.mark.parametrize(
    ("budget", "at_cap", "told"), [("3", "partial", False), ("1.4", "partial", True), ("1.4", "park", False)]
)
def test_the_last_call_in_budget_is_told_to_answer(budget: str, at_cap: str, told: bool):
    options = JobOptions.model_validate({"at_cap": at_cap, "budget_usd": budget})
    log = Log(budget_usd=Decimal(budget), held_usd=Decimal(budget), options=options)

    assert (last_turn(log.ask().answer("Let me look.", "t").result().job) is not None) is told


def test_a_model_is_told_once():
    log = Log(max_steps=2).ask().answer("Let me look.", "t").result()
    note = last_turn(log.job)
    assert note is not None

    told = log.job._replace(conversation=log.job.conversation._replace(messages=(*log.job.conversation.messages, note)))

    assert last_turn(told) is None
