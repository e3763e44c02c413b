"""What jobs planned is stored once a job, found by name and words, and is its tenant's own."""

from typing import Any

from wayline.chassis import Service
from wayline.contracts.task_graphs import (
    DocumentContext,
    GetDocumentContext,
    GraphEdge,
    GraphTask,
    QueryTaskGraph,
    SaveTaskGraph,
    TaskGraph,
    TaskGraphSaved,
)


def needs(task: str, other: str, **fields: Any) -> GraphEdge:
    return GraphEdge(task=task, needs=other, weight=fields.pop("weight", 0.8), **fields)


async def save(client: Any, job: str, *edges: GraphEdge, tenant: str = "acme", **fields: Any) -> TaskGraphSaved:
    names = {name: None for edge in edges for name in (edge.task, edge.needs)}
    tasks = fields.pop("tasks", tuple(GraphTask(name=name) for name in names))
    return await client.bus.ask(
        SaveTaskGraph(tenant=tenant, job_id=job, tasks=tasks, edges=edges, **fields), TaskGraphSaved
    )


async def query(client: Any, *, tenant: str = "acme", **fields: Any) -> TaskGraph:
    return await client.bus.ask(QueryTaskGraph(tenant=tenant, **fields), TaskGraph)


def pairs(graph: TaskGraph) -> set[tuple[str, str]]:
    return {(edge.task, edge.needs) for edge in graph.edges}


async def test_a_jobs_tasks_are_stored_once_and_found(service: Service, client: Any):
    chain = (
        needs("Send the invitations", "Book the venue", quote="once it is booked"),
        needs("Rest", "Send the invitations"),
    )
    first = await save(client, "job-1", *chain)
    again = await save(client, "job-1", needs("Send the invitations", "Book the venue", weight=0.1))
    await save(client, "job-2", needs("SEND the invitations!", "Book the venue", weight=0.9, quote="after the venue"))

    found = await query(client, names=("book the VENUE",), depth=1)
    by_words = await query(client, text="who sends invitations?", depth=2)

    assert (first.new, again.new, first.edges) == (True, False, 2)
    assert pairs(found) == {("SEND the invitations!", "Book the venue")}
    assert [(one.weight, one.quote, one.source_job, one.jobs) for one in found.edges] == [
        (0.9, "after the venue", "job-2", 2)
    ]
    assert len(by_words.tasks) == 3 and len(by_words.edges) == 2
    assert (await query(client, text="submarine")).tasks == ()
    assert len((await query(client)).tasks) == 3


async def test_strangers_words_never_replace_what_is_trusted(service: Service, client: Any):
    edge = needs("Pay the bill", "Check the bill", weight=0.7, quote="we check first")
    await save(client, "job-1", edge, needs("Pay the bill", "Call the bank"))
    await save(client, "job-2", needs("Pay the bill", "Check the bill", weight=1.0, quote="evil"), untrusted=True)
    await save(client, "job-3", needs("Pay the bill", "Wire the money", quote="evil"), untrusted=True)

    found = {edge.needs: edge for edge in (await query(client, names=("Pay the bill",))).edges}

    assert (found["Check the bill"].quote, found["Check the bill"].untrusted) == ("we check first", False)
    assert found["Wire the money"].untrusted
    await save(client, "job-4", needs("Pay the bill", "Wire the money", quote="ours"))
    [now] = (await query(client, names=("Wire the money",))).edges
    assert (now.quote, now.untrusted) == ("ours", False)


async def test_a_tenant_sees_its_own_tasks_and_passages_only(service: Service, client: Any):
    await save(client, "job-1", needs("Send the invitations", "Book the venue"))
    await client.ingest("plan", "\n\n".join(f"Passage {n} about the venue. " + "More words. " * 40 for n in range(6)))

    others = await query(client, tenant="globex", names=("Book the venue",), text="invitations venue")
    whole = await client.bus.ask(GetDocumentContext(tenant="acme", document_id="plan", after=20), DocumentContext)
    third = whole.passages[2]
    around = await client.bus.ask(
        GetDocumentContext(tenant="acme", document_id="plan", chunk_id=third.chunk_id, before=1, after=1),
        DocumentContext,
    )

    assert (others.tasks, others.edges, others.known_tasks) == ((), (), 0)
    assert around.passages == whole.passages[1:4] and whole.passages_total == len(whole.passages)
    for fields in ({"tenant": "globex"}, {"chunk_id": "plan#999"}, {"document_id": "none"}):
        asked = GetDocumentContext(**({"tenant": "acme", "document_id": "plan"} | fields))
        assert await client.refused(asked) == "not_found"


async def test_a_deleted_document_takes_the_dependencies_that_quote_it(service: Service, client: Any):
    await client.ingest("plan", "Send the invitations after the venue is booked.")
    await save(client, "job-1", needs("a b", "c d", quote="after the venue", document_id="plan"), needs("a b", "e f"))

    await client.delete("plan")

    assert pairs(await query(client)) == {("a b", "e f")}


async def test_a_tenants_oldest_tasks_give_way(start: Any, client: Any):
    await start(tasks_per_tenant_max=1_000)
    await save(client, "job-1", needs("old one", "old two"))
    await save(client, "job-2", tasks=tuple(GraphTask(name=f"new {n}") for n in range(1_000)))

    found = await query(client, names=("old one", "old two"))

    assert (found.tasks, found.edges, found.known_tasks) == ((), (), 1_000)
