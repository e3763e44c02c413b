"""What becomes of a job whose model call failed or may not be made now: again, later, another model, or the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from wayline.contracts import events as e
from wayline.contracts.jobs import Failure, Lane, Waiting
from wayline.executor.decide import compaction
from wayline.executor.decide.actions import CallModel, Compact, Fail, Park, Reroute
from wayline.executor.decide.helper_model import helper_model
from wayline.executor.decide.prompt_cache import warm_tokens
from wayline.journal import Job
from wayline.llm.prices import LOCAL
from wayline.routing import Cause, next_route

ATTEMPTS_MAX = 4
"""Tries of one call by one model, the first one included; calls that were only lost are not counted."""
BACKOFF_S = (0.0, 1.0, 4.0, 10.0)
"""The wait after the n-th failure, where the provider says nothing of its own."""
PATIENCE_S = 10.0
"""A longer wait is not made while a fallback can go on."""
WAIT_MAX_S = 60.0
"""A longer wait is not made at all."""

SHUT = "unavailable"
"""The code of a call that was not made because its model is left alone for now."""
AWAY = frozenset({"rate_limited", "overloaded", "server_error", "connection", "timeout"})
"""Errors of a provider that is away for now. A job parks for them where the try has cost nothing."""
PARK_S = (30.0, 60.0, 120.0, 300.0)
"""How long a job is parked for its provider, each time longer, where the provider says nothing of its own."""
PATIENCE_S_BATCH = 6 * 3_600.0
PATIENCE_S_MIN = 1.0
"""Less of it is not worth a wait."""

NEVER_AGAIN = frozenset({"spend_cap"})
"""Errors that no second try can mend, whatever an adapter thinks of them."""
PROVIDER_WIDE = frozenset({"spend_cap", "authentication", "unknown_provider"})
"""Errors of every model of a provider: only another provider can go on."""

_ADVICE = {
    "spend_cap": "raise the spending limit at the provider, or give the agent a fallback of another provider",
    "authentication": "check the provider's API key",
    "unknown_model": "name a model of GET /v1/models",
    "unsupported_input": "use a model that takes it (GET /v1/models says which do), or say it in text",
    "context_too_long": "use a model with a larger window, or say less",
}


def after_failure(job: Job, failed: e.ModelFailed) -> CallModel | Reroute | Compact | Park | Fail:
    """Try again after a wait where that can help, else with another model or a shorter prompt, else not at all."""
    code = failed.error.code
    if job.model.waited_for == job.model.failures:
        # That failure has been waited for.
        return CallModel(failed.step, failed.attempt + 1)
    if code == e.LOST:
        # The call was not at fault. A call that kills each of its holders ends the job as a crash loop.
        return CallModel(failed.step, failed.attempt + 1)
    wait_s = failed.after_s if failed.after_s is not None else BACKOFF_S[min(job.model.failures, len(BACKOFF_S) - 1)]
    again = failed.retryable and code not in NEVER_AGAIN and job.model.failures < ATTEMPTS_MAX
    if not again or wait_s > _wait_max_s(job):
        return (
            elsewhere(job, code, why=_why(job, code))
            or (compaction.shorten(job) if code == "context_too_long" else None)
            or _wait_parked(job, failed)
            or Fail(_explained(job, failed, wait_s if again else None))
        )
    if wait_s > PATIENCE_S:
        fallen = _rerouted(job, "fallback", code, why=f"{_why(job, code)} and is to be left alone for {wait_s:g} s")
        if fallen:
            return fallen
    return CallModel(failed.step, failed.attempt + 1, wait_s)


def _wait_parked(job: Job, failed: e.ModelFailed) -> Park | None:
    """Park a job whose provider is away, while it has patience; not where tries may cost money."""
    costs = failed.cost_usd or failed.unsettled or failed.usage
    if failed.error.code not in AWAY or not failed.retryable or costs:
        return None
    wait_s = failed.after_s or _park_s(job, job.model.failures - ATTEMPTS_MAX, since=job.model.failing_since)
    return park(job, wait_s=wait_s, why=f"{_why(job, failed.error.code)}: {failed.error.message}")


def wait_for_helper(job: Job) -> Park | None:
    """Park a job that can go on with nothing but a helper model's answer, while that model's provider is away.

    None: it is not, the try may have cost something, or the job has no patience left.
    """
    failed, since = job.remembering.failed, job.remembering.failing_since
    if failed is None or failed.error.code not in AWAY | {SHUT}:
        return None
    if failed.cost_usd or failed.unsettled or failed.usage:
        return None
    wait_s = _park_s(job, job.remembering.failures - 1, since=since)
    return park(job, wait_s=wait_s, why=failed.error.message, since=since)


def awaited_model(job: Job) -> str | None:
    """Return the model that a job is parked for while its provider is away."""
    if job.life.submitted is not None and job.life.submitted.keeps_memory:
        helper = helper_model(job)
        return helper.name if helper is not None else None
    return job.routing.route.name if job.routing.route is not None else None


def _park_s(job: Job, place: int, *, since: datetime | None) -> float:
    """Return how long a job is parked for the n-th time, counted from 0; its last wait ends with its patience."""
    longest_s = max(_patience_left_s(job, since), PATIENCE_S_MIN)
    return min(PARK_S[min(max(place, 0), len(PARK_S) - 1)], longest_s)


def park(job: Job, *, wait_s: float, why: str, since: datetime | None = None) -> Park | None:
    """Park a job until its provider may be called again; None: that is longer than the job has patience.

    `since`: when that was first away; unless said, as the calls of the conversation tell.
    """
    left_s = _patience_left_s(job, since or job.model.failing_since)
    if job.at is None or left_s < PATIENCE_S_MIN or wait_s > left_s:
        return None
    at = job.at + timedelta(seconds=wait_s)
    # A wait of its own each time: what was scheduled for an earlier one must not end this one.
    return Park(Waiting(why="provider", wait_id=f"provider-{job.seq}", question=why, expires_at=at))


def _patience_left_s(job: Job, since: datetime | None) -> float:
    """Return how long the job still waits for a provider that has been away since then; None: not until now."""
    assert job.life.submitted is not None and job.routing.limits is not None
    options = job.life.submitted.options
    by_lane: Mapping[Lane, float] = {"interactive": job.routing.limits.max_seconds, "batch": PATIENCE_S_BATCH}
    patience_s = by_lane[options.lane] if options.provider_patience_s is None else options.provider_patience_s
    waited_s = 0.0 if since is None or job.at is None else (job.at - since) / timedelta(seconds=1)
    return patience_s - waited_s


def when_shut(job: Job, *, wait_s: float, waited_s: float, why: str) -> Reroute | Park | Fail | None:
    """Choose what to do about a model that may not be called for a while; None: wait."""
    assert job.routing.route is not None
    reason = f"{job.routing.route.name} {why}"
    if waited_s + wait_s > _wait_max_s(job):
        message = f"{reason}, for {wait_s:.0f} s more, and no other model can go on"
        return (
            elsewhere(job, "", why=reason)
            or park(job, wait_s=wait_s, why=reason)
            or Fail(_last_error(job, Failure(code="unavailable", message=message)))
        )
    return _rerouted(job, "fallback", "", why=reason) if waited_s + wait_s > PATIENCE_S else None


def elsewhere(job: Job, code: str, *, why: str) -> Reroute | None:
    """Choose the model that goes on where this one cannot: along the fallbacks, else up the slots, once a job."""
    found = _rerouted(job, "fallback", code, why=why)
    return found or (None if job.routing.escalated else _rerouted(job, "escalation", code, why=why))


def next_fallback(job: Job, *, why: str) -> Reroute | None:
    """Choose the next of the agent's fallbacks; None: there is none left."""
    return _rerouted(job, "fallback", "", why=why)


def escalate(job: Job, *, why: str, note: str | None = None) -> Reroute | None:
    """Choose a stronger model, once a job: one that came down is not raised again."""
    return None if job.routing.escalated else _rerouted(job, "escalation", "", why=why, note=note)


def _rerouted(job: Job, cause: Cause, code: str, *, why: str, note: str | None = None) -> Reroute | None:
    assert job.routing.route is not None
    window = job.routing.card.context_window if code == "context_too_long" else 0
    avoid = {*job.routing.tried, *_unfit(job, code)}
    route = next_route(
        job.routing.candidates,
        job.routing.route,
        cause,
        why=why,
        avoid=avoid,
        prompt_tokens=window,
        warm_tokens=warm_tokens(job),
    )
    return Reroute(route, cause, note) if route else None


def _unfit(job: Job, code: str) -> Iterator[str]:
    """Yield the models that this job cannot use: their provider refuses us, or a budget needs a price they lack."""
    assert job.routing.route is not None
    for card in job.routing.candidates.cards:
        shut_out = code in PROVIDER_WIDE and card.provider == job.routing.route.provider
        unpriced = job.money.held_usd is not None and card.prices is None and card.provider not in LOCAL
        if shut_out or unpriced:
            yield card.name


def _wait_max_s(job: Job) -> float:
    """Return how long the job may wait at most: its own time ends too."""
    if job.at is None or job.life.deadline is None:
        return WAIT_MAX_S
    return min(WAIT_MAX_S, (job.life.deadline - job.at) / timedelta(seconds=1))


def _last_error(job: Job, instead: Failure) -> Failure:
    """Return what the provider said last, where it said anything: that is why the job ends."""
    failed = job.model.failed
    if failed is None or failed.error.code == e.LOST:
        return instead
    return Failure(code=failed.error.code, message=f"{failed.error.message.removesuffix('.')}; {instead.message}")


def _why(job: Job, code: str) -> str:
    assert job.routing.route is not None
    return f"{job.routing.route.name} failed ({code.replace('_', ' ')})"


def _explained(job: Job, failed: e.ModelFailed, wait_s: float | None) -> Failure:
    """Return the provider's words, and what to do about them."""
    assert job.routing.route is not None
    code, message = failed.error.code, failed.error.message
    if wait_s is not None and failed.after_s is not None:
        message = f"{message}; {job.routing.route.name} is to be left alone for {wait_s:g} s, longer than the job waits"
    advice = _ADVICE.get(code)
    return Failure(code=code, message=f"{message.removesuffix('.')}. To go on, {advice}" if advice else message)
