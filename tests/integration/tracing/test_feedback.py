"""What is thought of a job: one judgement by each name about each key, summed on the job, gone with it."""

from __future__ import annotations

import asyncio

import pytest

from wayline.contracts.errors import NotFound, Refused
from wayline.contracts.feedback import (
    FEEDBACK_MAX,
    Feedback,
    FeedbackList,
    FeedbackSummary,
    GiveFeedback,
    ListFeedback,
)
from wayline.contracts.forgetting import Erased, EraseFromTracing
from wayline.contracts.traces import JobPage, ListJobs
from wayline.tracing.errors import TooMuchFeedback
from wayline.tracing.handlers.feedback import FeedbackHandlers
from wayline.tracing.rebuild import rebuild
from wayline.tracing.rows import SpanRow

from .conftest import Log, Start, TracingPlatform, flat

EVENT = "gen_ai.evaluation.result"


def give(job_id: str = "j1", by: str = "ann", **said: object) -> GiveFeedback:
    return GiveFeedback.model_validate({"tenant": "acme", "job_id": job_id, "by": by, **said})


async def ids(platform: TracingPlatform, **wanted: object) -> set[str]:
    page = await platform.bus.ask(ListJobs.model_validate({"tenant": "acme", **wanted}), JobPage)
    return {job.job_id for job in page.jobs}


async def test_judgements_are_replaced_summed_found_and_told_once(platform: TracingPlatform, start: Start):
    await start()
    for job_id in ("j1", "j2", "j3"):
        await Log(platform.bus, job_id=job_id).whole()
    await platform.wait_until_read()
    told: list[SpanRow] = []
    handlers = FeedbackHandlers(platform.tables, forward=told.extend)

    first = await handlers.on_give(give(label="up", comment="good"))
    repeated = await handlers.on_give(give(label="up", comment="good"))
    await asyncio.gather(*(handlers.on_give(give(by="judge", key=f"k{n % 2}", score=n / 4)) for n in range(5)))
    changed = await platform.bus.ask(give(label="wrong", score=0.25), Feedback)
    await platform.bus.ask(give("j2", label="seen"), Feedback)
    listed = await platform.bus.ask(ListFeedback(tenant="acme", job_id="j1"), FeedbackList)

    assert first == repeated and first.score == 1 and len(told) == 1 + 5
    assert len({span.span_id for span in told}) == len(told)
    assert {(one.by, one.key) for one in listed.feedback} == {("ann", "feedback"), ("judge", "k0"), ("judge", "k1")}
    scores = [one.score for one in listed.feedback if one.score is not None]
    assert listed.feedback[0] == changed and listed.summary is not None
    assert listed.summary.score == pytest.approx(sum(scores) / 3)
    assert (listed.summary.judgements, listed.summary.labels) == (3, {"wrong": 1})
    found = {kind: await ids(platform, feedback=kind) for kind in ("up", "down", "any", "none")}
    assert (found["any"], found["none"]) == ({"j1", "j2"}, {"j3"})
    assert found["up"] | found["down"] == {"j1"} and not found["up"] & found["down"]
    assert await ids(platform, score_min=0.0, score_max=1.0) == {"j1"}
    spans = [span for span in flat((await platform.trace("j1")).root) if span.name == "evaluation"]
    assert len(spans) == 1 + 5 + 1 and {event["name"] for span in spans for event in span.events} == {EVENT}
    last = max(spans, key=lambda span: span.start).events[0]["attributes"]
    assert last["gen_ai.evaluation.score.label"] == "wrong" and last["gen_ai.evaluation.score.value"] == 0.25


async def test_feedback_stays_through_a_rebuild_and_goes_with_its_user(platform: TracingPlatform, start: Start):
    service = await start()
    await Log(platform.bus).whole()
    await Log(platform.bus, job_id="theirs").whole()
    await platform.wait_until_read()
    await platform.bus.ask(give(label="up"), Feedback)
    for comment in ("bad", "very bad"):
        await platform.bus.ask(give("theirs", label="down", comment=comment), Feedback)
    await platform.bus.ask(give("theirs", by="bob", score=1), Feedback)

    await rebuild(service.bus, platform.tables, spans_days=7)
    rebuilt = await platform.rows("SELECT feedback FROM jobs WHERE job_id = 'theirs'")
    asked = EraseFromTracing(tenant="acme", user_id="ann", job_ids=("j1",))
    counted = await platform.bus.ask(asked.model_copy(update={"count_only": True}), Erased)
    erased = await platform.bus.ask(asked, Erased)

    assert rebuilt[0]["feedback"] == {"judgements": 2, "score": 0.5, "labels": {"down": 1}}
    assert counted == erased and erased.counts["feedback"] == 2
    left = await platform.bus.ask(ListFeedback(tenant="acme", job_id="theirs"), FeedbackList)
    assert left.summary == FeedbackSummary(judgements=1, score=1.0) and left.feedback[0].by == "bob"
    assert await platform.rows("SELECT 1 FROM spans WHERE events::text LIKE '%bad%'") == []
    with pytest.raises(Refused) as gone:
        await platform.bus.ask(ListFeedback(tenant="acme", job_id="j1"), FeedbackList)
    assert gone.value.status == NotFound.status


async def test_a_job_takes_no_more_judgements_than_allowed(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await platform.wait_until_read()
    handlers = FeedbackHandlers(platform.tables, forward=None)
    await platform.rows(
        "INSERT INTO feedback (tenant, job_id, given_by, key, score, comment)"
        f" SELECT 'acme', 'j1', 'u' || n, 'feedback', 1, '' FROM generate_series(1, {FEEDBACK_MAX}) AS n RETURNING 1"
    )

    with pytest.raises(TooMuchFeedback):
        await handlers.on_give(give(by="one more", score=0))
    assert (await handlers.on_give(give(by="u7", score=0))).score == 0
