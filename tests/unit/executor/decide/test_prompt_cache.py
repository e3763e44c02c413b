"""What a job has in its model's cache: told to whoever leaves the model, and to the next job of the session."""

from datetime import timedelta
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.budgets import LeftWarm
from wayline.contracts.chat import TextPart
from wayline.contracts.models import CacheRules
from wayline.executor.decide.actions import Reroute
from wayline.executor.decide.prompt_cache import left_warm, warm_tokens
from wayline.executor.decide.retry_or_reroute import escalate
from wayline.journal import Job
from wayline.testkit.jobs import job_with

from ..logs import AT, STRONG, Log, card

PREFIX = (
    e.Segment(part="tools", hash="t", count=1, tokens=1_500),
    e.Segment(part="system", hash="s", tokens=500),
    e.Segment(part="messages", hash="m", count=2, tokens=900),
)


def job(session: str | None = "s1", *, answered: bool = True, **cache: Any) -> Job:
    rules = CacheRules(**{"kind": "breakpoints", "min_tokens": 1_000, "ttl_s": 300, **cache})
    log = Log(
        cards=(card("acme/primary", cache=rules), STRONG), slots={"primary": "acme/primary", "escalation": STRONG.name}
    )
    log.ask(prefix=PREFIX)
    told = log.answer("so").job if answered else log.fail("overloaded").job
    assert told.life.submitted is not None
    return job_with(told, submitted=told.life.submitted.model_copy(update={"session_id": session}))


def test_a_job_leaves_its_prefix_warm_until_the_cache_expires():
    asked_at = AT + timedelta(seconds=4)

    assert left_warm(job()) == LeftWarm(
        session_id="s1",
        agent="a",
        agent_version=1,
        model="acme/primary",
        prefix_tokens=2_000,
        until=asked_at + timedelta(seconds=300),
    )


def test_pinned_documents_make_a_short_prefix_cacheable():
    pinned = (TextPart(text="rule " * 800),)
    short = job(min_tokens=2_500)
    assert short.routing.config is not None
    with_them = job_with(short, config=short.routing.config.model_copy(update={"pinned": pinned}))

    left = left_warm(with_them)

    assert left_warm(short) is None
    assert left is not None and left.prefix_tokens == 2_000, "the router counts what is pinned by itself"


@pytest.mark.parametrize(
    "nothing",
    [{"session": None}, {"answered": False}, {"kind": "none"}, {"ttl_s": None}, {"min_tokens": 2_001}, {"ttl_s": 0.5}],
    ids=str,
)
def test_nothing_is_left_where_nothing_is_kept_for_sure(nothing: dict[str, Any]):
    assert left_warm(job(**nothing)) is None


def test_a_cache_is_believed_in_for_a_day_at_most():
    left = left_warm(job(ttl_s=10_000_000))

    assert left is not None and left.until - AT < timedelta(days=1, seconds=10)


def test_leaving_a_model_names_the_cost_of_its_warm_prompt():
    up = escalate(job(), why="it was unsure")
    cold = escalate(job(answered=False), why="it was unsure")

    assert warm_tokens(job()) == 2_900
    assert warm_tokens(job_with(job(), compacted=True)) == 2_000, "the messages are others now"
    assert isinstance(up, Reroute) and up.route.reason.endswith("which reads 2900 warm tokens anew for $0.029")
    assert isinstance(cold, Reroute) and "anew" not in cold.route.reason
