"""Documents of a user, what is remembered and what jobs planned are erased, and nothing of others."""

from typing import Any

from wayline.chassis import Service
from wayline.contracts.forgetting import Erased, EraseFromRetrieval
from wayline.contracts.memory import (
    FactsSaved,
    ListSubjects,
    NewFact,
    PutSubject,
    SaveMemories,
    StoreInsights,
    Subject,
    SubjectPage,
    SubjectRef,
    WrittenBy,
)
from wayline.testkit import Platform

from .test_tasks import needs, query, save

ACME = SubjectRef(type="company", id="acme")


async def remember(client: Any, user: str, text: str, *, tenant: str = "acme", job: str = "j1") -> None:
    fact = NewFact(text=text, category="preference")
    written = WrittenBy(job_id=job, by="a person", source="user_noted")
    saved = await client.bus.ask(
        SaveMemories(tenant=tenant, key=f"{tenant}/{user}/{text}", user_id=user, facts=(fact,), written=written),
        FactsSaved,
    )
    assert saved.outcomes[0].outcome == "saved", saved


async def test_all_of_a_user_is_erased_and_nothing_of_others(service: Service, client: Any):
    for tenant in ("acme", "globex"):
        await client.ingest("hers", "Her own long text about the sea.", tenant=tenant, user_id="ann")
        await remember(client, "ann", "Prefers trains to planes on long ways.", tenant=tenant)
    await client.ingest("nobodys", "A text that nobody in particular sent.")
    await remember(client, "bob", "Prefers planes to trains on long ways.")
    asked = EraseFromRetrieval(tenant="acme", user_id="ann", samples=("A text that nobody in particular",))

    counted = await client.bus.ask(asked.model_copy(update={"count_only": True}), Erased)
    erased = await client.bus.ask(asked, Erased)
    again = await client.bus.ask(asked, Erased)

    assert counted == erased
    assert (erased.counts["documents"], erased.counts["passages"], erased.counts["facts"]) == (1, 1, 1)
    assert erased.kept == {"passages_of_other_documents_with_the_same_words": 1}
    assert again.counts == {}
    assert await client.get("hers") is None and await client.get("nobodys") is not None
    theirs = EraseFromRetrieval(tenant="globex", user_id="ann", count_only=True)
    assert (await client.bus.ask(theirs, Erased)).counts["documents"] == 1


async def test_what_a_job_planned_and_remembered_is_erased(service: Service, client: Any):
    await save(client, "job-1", needs("Send the invitations", "Book the venue", quote="once it is booked"))
    await save(client, "job-2", needs("Rest", "Eat"))
    await remember(client, "bob", "Prefers a quiet venue to a loud one.", job="job-1")

    erased = await client.bus.ask(EraseFromRetrieval(tenant="acme", job_ids=("job-1",)), Erased)

    counts = {"facts": 1, "fact_conversations": 1, "task_edges": 1, "tasks": 2, "planned_jobs": 1}
    assert erased.counts == counts
    assert {task.name for task in (await query(client)).tasks} == {"Rest", "Eat"}


async def test_a_subject_is_erased_with_the_insights_about_it(service: Service, client: Any):
    await client.bus.ask(PutSubject(tenant="acme", ref=ACME, name="Acme"), Subject)
    fact = NewFact(text="Buys only before the end of the year.", category="timeline")
    told = StoreInsights(
        tenant="acme", key="k1", about=ACME, facts=(fact,), written=WrittenBy(source="user_noted", by="x")
    )
    await client.bus.ask(told, FactsSaved)

    erased = await client.bus.ask(EraseFromRetrieval(tenant="acme", subject_ref=ACME), Erased)

    assert (erased.counts["facts"], erased.counts["subjects"]) == (1, 1)
    assert (await client.bus.ask(ListSubjects(tenant="acme"), SubjectPage)).subjects == ()


async def test_the_queries_of_a_tenant_go_with_any_of_its_users(service: Service, client: Any, platform: Platform):
    asks = "INSERT INTO retrieval.asked_queries (tenant, query, query_sha256) VALUES ($1, $2, $3)"
    async with platform.superuser() as conn:
        await conn.executemany(asks, [(tenant, "Where does Ann live?", b"1") for tenant in ("acme", "globex")])

    await client.bus.ask(EraseFromRetrieval(tenant="acme", user_id="ann"), Erased)

    async with platform.superuser() as conn:
        assert await conn.fetch("SELECT tenant FROM retrieval.asked_queries") == [("globex",)]
