"""What becomes of a job whose model call failed: again, another model, or the end."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.chat import NoteMessage
from wayline.contracts.jobs import JobOptions, Waiting
from wayline.executor.decide.actions import CallModel, Compact, Complete, Fail, Park, Reroute
from wayline.executor.decide.retry_or_reroute import BACKOFF_S, PARK_S, PATIENCE_S, WAIT_MAX_S, when_shut

from ..logs import CHEAP, Log, card

CHAIN = ("acme/sister", "other/spare")


def test_a_transient_failure_is_retried_then_waited_for():
    log, waits = Log(), []
    for attempt in (1, 2, 3):
        again = log.failing("server_error", attempt=attempt).next
        assert isinstance(again, CallModel) and (again.step, again.attempt) == (1, attempt + 1)
        waits.append(again.delay_s)

    parked = log.failing("server_error", attempt=4).next

    assert tuple(waits) == BACKOFF_S[1:]
    assert isinstance(parked, Park) and parked.waiting.why == "provider"
    assert parked.waiting.expires_at == log.events[-1].at + timedelta(seconds=PARK_S[0])


def waited(log: Log, parked: Park, *, seconds: float | None = None) -> Log:
    """The log after the job was parked, and woken when its wait was over."""
    log.say(e.JobParked, waiting=parked.waiting, signals_seen=0)
    assert parked.waiting.expires_at is not None
    woken_at = parked.waiting.expires_at if seconds is None else log.events[-1].at + timedelta(seconds=seconds)
    log.say(e.JobResumed)
    log.events[-1] = log.events[-1].model_copy(update={"at": woken_at})
    return log


def failing_at(log: Log, attempt: int) -> Log:
    """The log after a try that failed right after the event before it."""
    at = log.events[-1].at
    log.failing("overloaded", attempt=attempt)
    log.events[-2:] = [event.model_copy(update={"at": at}) for event in log.events[-2:]]
    return log


def test_an_outage_is_waited_for_until_patience_ends():
    log = Log(options=JobOptions(provider_patience_s=1_200))
    for attempt in (1, 2, 3, 4):
        failing_at(log, attempt)
    began_at, attempt, waits = log.events[-1].at, 4, []
    while isinstance(parked := log.next, Park):
        assert parked.waiting.expires_at is not None
        waits.append((parked.waiting.expires_at - log.events[-1].at).total_seconds())
        assert waited(log, parked).next == CallModel(1, attempt + 1)
        attempt += 1
        failing_at(log, attempt)

    assert tuple(waits[: len(PARK_S)]) == PARK_S
    assert (log.events[-1].at - began_at).total_seconds() == sum(waits) == 1_200
    assert isinstance(parked, Fail) and (parked.error.code, parked.error.message) == ("overloaded", "no")


def test_a_job_that_was_woken_early_tries_early():
    log = Log().failing("overloaded", after_s=WAIT_MAX_S + 100)
    parked = log.next
    assert isinstance(parked, Park)

    assert waited(log, parked, seconds=1).next == CallModel(1, 2)


@pytest.mark.parametrize(
    "cost", [{"cost_usd": Decimal("0.01")}, {"unsettled": e.Bounds(lower_usd=None, upper_usd=None)}]
)
def test_a_try_that_may_have_cost_money_is_not_waited_for(cost: dict[str, Any]):
    log = Log()
    for attempt in (1, 2, 3, 4):
        log.failing("server_error", attempt=attempt)
    log.events[-1] = log.events[-1].model_copy(update=cost)

    assert isinstance(log.next, Fail)


def test_a_provider_that_answers_starts_patience_anew():
    log = Log()
    for attempt in (1, 2, 3, 4):
        log.failing("overloaded", attempt=attempt)
    parked = log.next
    assert isinstance(parked, Park)
    waited(log, parked).ask(1, 5).answer("look", "t")

    assert (log.job.model.failing_since, log.job.model.waited_for, log.job.model.failures) == (None, None, 0)


def test_advice_follows_the_providers_message_as_its_own_sentence():
    refused = Log().ask(1, 1).fail("unknown_model", message="no such model.", retryable=False).next

    assert isinstance(refused, Fail)
    assert refused.error.message == "no such model. To go on, name a model of GET /v1/models"


def test_the_providers_retry_after_is_the_wait():
    assert Log().failing("rate_limited", after_s=7.5).next == CallModel(1, 2, 7.5)
    assert Log().failing("rate_limited").next == CallModel(1, 2, BACKOFF_S[1])


def test_a_long_wait_happens_only_without_a_fallback():
    long = PATIENCE_S + 1

    assert Log().failing("rate_limited", after_s=long).next == CallModel(1, 2, long)
    rerouted = Log(fallbacks=CHAIN).failing("rate_limited", after_s=long).next
    assert isinstance(rerouted, Reroute) and (rerouted.cause, rerouted.route.name) == ("fallback", "acme/sister")
    assert "11 s" in rerouted.route.reason


def test_a_wait_beyond_patience_fails_with_its_length():
    log = Log(options=JobOptions(provider_patience_s=0))
    ended = log.failing("rate_limited", after_s=WAIT_MAX_S + 1).next

    assert isinstance(ended, Fail) and ended.error.code == "rate_limited"
    assert "61 s" in ended.error.message and "acme/primary" in ended.error.message


def test_a_wait_that_outlasts_the_jobs_own_time_is_parked():
    log = Log().failing("rate_limited", after_s=30)
    late = log.events[-1].model_copy(update={"at": log.events[0].at + timedelta(seconds=590)})
    log.events[-1] = late

    parked = log.next
    assert isinstance(parked, Park) and parked.waiting.expires_at == late.at + timedelta(seconds=30)


@pytest.mark.parametrize("retryable", [True, False])
def test_a_spend_cap_is_never_retried_and_gives_advice(retryable: bool):
    ended = Log().failing("spend_cap", retryable=retryable).next

    assert isinstance(ended, Fail) and ended.error.code == "spend_cap"
    assert "spending limit" in ended.error.message and "fallback" in ended.error.message


@pytest.mark.parametrize("code", ["spend_cap", "authentication", "unknown_provider"])
def test_what_is_wrong_with_a_whole_provider_goes_to_another_provider(code: str):
    rerouted = Log(fallbacks=CHAIN).failing(code, retryable=False).next

    assert isinstance(rerouted, Reroute) and rerouted.route.name == "other/spare"


@pytest.mark.parametrize("code", ["invalid_request", "unknown_model", "unreadable"])
def test_a_models_own_failure_goes_to_the_next_fallback(code: str):
    log = Log(fallbacks=CHAIN).failing(code, retryable=False)

    first = log.next
    assert isinstance(first, Reroute) and first.route.name == "acme/sister"
    assert log.take(first).next == CallModel(1, 2), "the same step, as an attempt of its own"
    second = log.failing(code, attempt=2, retryable=False).next
    assert isinstance(second, Reroute) and second.route.name == "other/spare"
    assert isinstance(log.take(second).failing(code, attempt=3, retryable=False).next, Fail)


def test_the_next_model_has_all_its_tries():
    log = Log(fallbacks=CHAIN)
    for attempt in (1, 2, 3, 4):
        log.failing("overloaded", attempt=attempt)
    log.take(log.next)

    assert log.failing("overloaded", attempt=5).next == CallModel(1, 6, BACKOFF_S[1])


def test_calls_that_were_only_lost_use_up_no_tries():
    log = Log()
    for attempt in (1, 2, 3, 4):
        log.failing("lost", attempt=attempt)

    assert log.next == CallModel(1, 5)
    assert log.failing("server_error", attempt=5).next == CallModel(1, 6, BACKOFF_S[1])


def test_a_prompt_that_is_too_long_goes_to_a_larger_window():
    wide = card("other/wide", CHEAP, context_window=1_000_000)
    log = Log(cards=(*Log().cards, wide), fallbacks=(*CHAIN, "other/wide"))

    rerouted = log.failing("context_too_long", retryable=False).next

    assert isinstance(rerouted, Reroute) and rerouted.route.name == "other/wide"


def test_where_no_fallback_is_left_the_stronger_slot_goes_on_once():
    log = Log(slots={"primary": "acme/primary", "escalation": "acme/strong"})

    up = log.failing("unreadable", retryable=False).next
    assert isinstance(up, Reroute) and (up.cause, up.route.name) == ("escalation", "acme/strong")
    assert isinstance(log.take(up).failing("unreadable", attempt=2, retryable=False).next, Fail)


def test_a_job_past_its_deadline_answers_with_earlier_text():
    log = Log().ask().answer("half", "t").result().failing("time_limit", step=2)
    log.events[-1] = log.events[-1].model_copy(update={"at": log.events[0].at + timedelta(seconds=600)})

    assert log.next == Complete("half", partial=True, reason="the job's 600 s are over")


def test_time_that_a_job_was_parked_is_not_its_own():
    log = Log().say(e.JobParked, waiting=Waiting(why="budget", wait_id="w"), signals_seen=0)
    log.say(e.JobResumed)
    log.events[-1] = log.events[-1].model_copy(update={"at": log.events[-2].at + timedelta(days=2)})

    assert log.next == CallModel(1, 1)


def test_a_shut_model_is_awaited_briefly_then_replaced():
    chained, alone = Log(fallbacks=CHAIN).job, Log(options=JobOptions(provider_patience_s=0)).job

    assert when_shut(chained, wait_s=PATIENCE_S, waited_s=0, why="keeps failing") is None
    rerouted = when_shut(chained, wait_s=1, waited_s=PATIENCE_S, why="keeps failing")
    assert isinstance(rerouted, Reroute)
    assert rerouted.route.reason == "acme/primary keeps failing, so the job falls back to acme/sister"
    assert when_shut(alone, wait_s=PATIENCE_S + 1, waited_s=0, why="keeps failing") is None
    ended = when_shut(alone, wait_s=1, waited_s=WAIT_MAX_S, why="keeps failing")
    assert isinstance(ended, Fail) and ended.error.code == "unavailable"
    assert "acme/primary keeps failing" in ended.error.message
    parked = when_shut(Log().job, wait_s=1, waited_s=WAIT_MAX_S, why="keeps failing")
    assert isinstance(parked, Park) and parked.waiting.question == "acme/primary keeps failing"


def test_a_prompt_found_too_long_is_shortened_once_and_asked_again():
    log = Log()
    for step in (1, 2, 3):
        log.ask(step, 1).answer("look", "t").result()
    log.failing("context_too_long", step=4, retryable=False)

    shortened = log.next
    assert isinstance(shortened, Compact)
    log.say(e.ContextCompacted, note=NoteMessage(label="CONTEXT", text="short"), kept=shortened.kept)
    assert log.next == CallModel(4, 2)
    assert isinstance(log.failing("context_too_long", step=4, attempt=2, retryable=False).next, Fail)
