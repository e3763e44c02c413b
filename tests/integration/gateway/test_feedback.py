"""Feedback over HTTP: in whose name it is given, and where it shows."""

from __future__ import annotations

from datetime import UTC, datetime

from wayline.chassis import Bus
from wayline.contracts import traces as t
from wayline.contracts.errors import NotFound
from wayline.contracts.feedback import FeedbackSummary, GiveFeedback, ListFeedback
from wayline.contracts.jobs import JobView, Status, SubmitJob
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import Running
from .others import ANSWERS, Others
from .story import Story

SUMMARY = FeedbackSummary(judgements=1, score=1.0, labels={"up": 1})


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def begun(bus: Bus, job_id: str, user_id: str) -> None:
    job = SubmitJob(tenant="default", job_id=job_id, agent="assistant", input="why?", user_id=user_id)
    await Story(bus, "default", job_id).begin(job)


async def test_feedback_is_given_in_the_name_of_the_keys_user(
    gateway: Running, others: Others, bus: Bus, platform: Platform
):
    given = ANSWERS[GiveFeedback].model_copy(update={"at": datetime(2026, 5, 2, tzinfo=UTC)})
    await others.answer(
        GiveFeedback, lambda asked: NotFound("job", asked.job_id) if asked.job_id in {"new", "none"} else given
    )
    await others.answer(ListFeedback)
    shown = JobView(job_id="anns", status=Status.RUNNING, agent="assistant", feedback=SUMMARY)
    await others.answer(t.ListJobs, t.JobPage(jobs=(shown,)))
    for job_id, user_id in (("anns", "ann"), ("bobs", "bob"), ("new", "bob")):
        await begun(bus, job_id, user_id)
    store = await platform.store("gateway")
    anns = bearer(await create_key(store, "default", "ann's", scopes=("read", "write"), user_id="ann"))
    app = bearer(await create_key(store, "default", "app", scopes=("read", "write")))
    client, good = gateway.client, {"label": "up"}

    own = await client.post("/v1/jobs/anns/feedback", json=good, headers=anns)
    named = await client.post("/v1/jobs/bobs/feedback", json={"score": 0.5, "by": "bob", "key": "tone"}, headers=app)
    await client.post("/v1/jobs/bobs/feedback", json=good, headers=app)
    refused = [
        await client.post("/v1/jobs/anns/feedback", json={**good, "by": "bob"}, headers=anns),
        await client.post("/v1/jobs/bobs/feedback", json=good, headers=anns),
        await client.get("/v1/jobs/bobs/feedback", headers=anns),
        await client.post("/v1/jobs/bobs/feedback", json={"comment": "no judgement"}, headers=app),
        await client.post("/v1/jobs/bobs/feedback", json={"score": 1.01}, headers=app),
        await client.post("/v1/jobs/none/feedback", json=good, headers=app),
        await client.post("/v1/jobs/new/feedback", json=good, headers=app),
    ]
    job = (await client.get("/v1/jobs/anns", headers=anns)).json()
    await client.get("/v1/jobs?feedback=down&score_max=0.4", headers=app)

    assert (own.status_code, named.status_code, own.json()["label"]) == (200, 200, "up")
    assert [one.status_code for one in refused] == [403, 404, 404, 422, 422, 404, 503]
    assert job["feedback"] == SUMMARY.model_dump()
    said = [(one.job_id, one.by, one.key) for one in others.asked if isinstance(one, GiveFeedback)][:3]
    assert said == [("anns", "ann", "feedback"), ("bobs", "bob", "tone"), ("bobs", "app", "feedback")]
    assert others.asked[-1] == t.ListJobs(tenant="default", feedback="down", score_max=0.4)
