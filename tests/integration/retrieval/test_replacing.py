"""A document is replaced at once and deleted for good, however its messages are delivered."""

import asyncio
from typing import Any

import pytest

from wayline.chassis import Delivery, Service
from wayline.contracts.errors import Refused
from wayline.contracts.knowledge import (
    AcceptDocument,
    DeleteDocument,
    Document,
    DocumentDeleted,
    DocumentText,
    IndexDocument,
    ReadDocument,
)
from wayline.retrieval.documents.document_table import DocumentTable
from wayline.retrieval.embeddings.embedding import LexicalHash
from wayline.testkit import Platform, until

from .conftest import Client, Start

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture
def client(tenant_client: Any) -> Client:
    return tenant_client


def old_text(version: str) -> str:
    return "\n\n".join(f"{version} zebra part{n}. " + "filler " * 120 for n in range(4))


async def delete(client: Any, document_id: str) -> DocumentDeleted:
    return await client.bus.ask(DeleteDocument(tenant=client.tenant, document_id=document_id), DocumentDeleted)


def handle(service: Service) -> Any:
    """The handler of index messages, to be called with deliveries of the test's own making."""
    return service.work[0].handle


async def test_the_same_id_again_replaces_every_chunk(client: Any):
    await client.ingest("d1", old_text("first"))
    await client.ingest("d1", "second zebra only.")

    hits = (await client.search("zebra", top_k=50)).hits

    assert [hit.text for hit in hits] == ["second zebra only."]
    assert (await client.search("first", mode="keyword")).hits == ()


async def test_a_reader_never_sees_a_mix_of_two_versions(client: Any):
    await client.ingest("d1", old_text("version0"))
    mixed: list[set[str]] = []
    replaced = asyncio.Event()

    async def read() -> None:
        while not replaced.is_set():
            hits = (await client.search("zebra", mode="keyword", top_k=50)).hits
            versions = {hit.text.split()[0] for hit in hits}
            if len(versions) != 1 or len(hits) != 4:
                mixed.append(versions)

    reading = asyncio.create_task(read())
    for n in range(1, 8):
        await client.ingest("d1", old_text(f"version{n}"))
    replaced.set()
    await reading

    assert mixed == []


async def test_a_failed_replacement_leaves_the_old_version_searchable(client: Any):
    await client.ingest("d1", "The old zebra.")
    failed = await client.ingest("d1", "")

    assert failed.status == "failed"
    assert [hit.text for hit in (await client.search("zebra")).hits] == ["The old zebra."]


async def test_a_redelivery_of_an_old_version_changes_nothing(shared_service: Service, client: Any):
    first = await client.send("d1", "first zebra")
    await client.send("d1", "second zebra")
    await client.idle()
    again = IndexDocument(tenant=client.tenant, document_id="d1", name="d1", text="first zebra")

    for deliveries in (1, 2):
        assert (
            await handle(shared_service)(again, Delivery("INDEX", "retrieval", first, deliveries, again.subject)) == []
        )

    assert [hit.text for hit in (await client.search("zebra")).hits] == ["second zebra"]


async def test_a_redelivery_of_a_finished_message_stores_nothing_again(
    shared_service: Service, client: Any, monkeypatch: pytest.MonkeyPatch
):
    sequence = await client.send("d1", "zebra")
    await client.idle()
    stored: list[str] = []
    monkeypatch.setattr(DocumentTable, "replace", lambda *_: stored.append("again"))
    again = IndexDocument(tenant=client.tenant, document_id="d1", name="d1", text="zebra")

    await handle(shared_service)(again, Delivery("INDEX", "retrieval", sequence, 2, again.subject))

    assert stored == []
    assert (await client.get("d1")).status == "ready"


async def test_a_recreated_streams_messages_are_heard_from_one(shared_service: Service, client: Any):
    for n in range(3):
        await client.ingest("d1", f"old zebra {n}")
    sequence = await client.send("other", "text")
    await client.idle()
    await client.bus.js.purge_stream("INDEX")
    first = IndexDocument(tenant=client.tenant, document_id="other", name="other", text="new zebra")

    # Its sequence is the row's own, but a first delivery cannot be a repeat.
    await handle(shared_service)(first, Delivery("INDEX", "retrieval", sequence, 1, first.subject))

    assert [hit.text for hit in (await client.search("new", mode="keyword")).hits] == ["new zebra"]


async def test_a_deleted_document_is_gone_with_its_chunks(client: Any):
    await client.ingest("d1", old_text("first"))
    await client.ingest("d2", "Another zebra.")

    assert await delete(client, "d1") == DocumentDeleted(document_id="d1", chunks_deleted=4)

    assert await client.get("d1") is None
    assert [hit.document_id for hit in (await client.search("zebra")).hits] == ["d2"]
    with pytest.raises(Refused) as refused:
        await delete(client, "d1")
    assert refused.value.code == "not_found"


@pytest.mark.asyncio(loop_scope="function")
async def test_an_index_message_from_before_the_deletion_revives_no_document(
    start: Start, platform: Platform, owner: Any, monkeypatch: pytest.MonkeyPatch
):
    client, embed, gate = Client(platform.bus), LexicalHash.embed, asyncio.Event()

    async def held(self: LexicalHash, texts: Any, **more: Any) -> Any:
        await gate.wait()
        return await embed(self, texts, **more)

    monkeypatch.setattr(LexicalHash, "embed", held)
    await start(index_slots=1)
    await client.send("first", "holds the only slot")
    await until(lambda: client.get("first"), why="the first document is in hand")
    await client.bus.ask(AcceptDocument(tenant=client.tenant, document_id="d1", name="d1"), Document)
    await client.send("d1", "late zebra")

    await delete(client, "d1")
    gate.set()
    await client.idle()

    assert await client.get("d1") is None
    assert {hit.document_id for hit in (await client.search("zebra", mode="vector")).hits} <= {"first"}
    # The tombstone goes with the next deletion or sweep, now that the queue is past it.
    assert await owner("SELECT status FROM retrieval.documents WHERE document_id = 'd1'") == [("deleted",)]
    await delete(client, "first")
    assert await owner("SELECT count(*) FROM retrieval.documents") == [(0,)]


async def test_a_document_sent_again_after_its_deletion_is_there_again(client: Any):
    await client.ingest("d1", "old zebra")
    await delete(client, "d1")

    again = await client.ingest("d1", "new zebra")

    assert again.status == "ready"
    assert [hit.text for hit in (await client.search("zebra")).hits] == ["new zebra"]


async def test_a_document_deleted_while_it_is_indexed_stays_deleted(client: Any, monkeypatch: pytest.MonkeyPatch):
    replace = DocumentTable.replace
    outcome: list[bool] = []

    async def deleted_first(self: DocumentTable, *args: Any) -> bool:
        await delete(client, "d1")
        outcome.append(await replace(self, *args))
        return outcome[-1]

    monkeypatch.setattr(DocumentTable, "replace", deleted_first)
    await client.send("d1", "zebra")
    await until(lambda: outcome, why="the store is reached")

    assert outcome == [False]
    assert await client.get("d1") is None
    assert (await client.search("zebra")).hits == ()


async def test_the_counts_that_ranking_uses_stay_in_step(client: Any, shared_owner: Any, shared_counted: Any):
    """Replaced, deleted and concurrent documents leave exactly the counts of what is stored."""
    for n in range(12):
        await client.send(f"d{n % 5}", old_text(f"version{n}") if n % 3 else "short zebra")
    await client.idle()
    await delete(client, "d3")
    await shared_counted()

    ours = f"WHERE tenant = '{client.tenant}'"
    known = await shared_owner(f"SELECT term, chunks FROM retrieval.terms {ours} ORDER BY term")
    stored = await shared_owner(
        f"SELECT lexeme, count(*) FROM retrieval.chunks, unnest(words) {ours} "
        'GROUP BY lexeme ORDER BY lexeme COLLATE "C"'
    )
    corpora = await shared_owner(f"SELECT chunks, words FROM retrieval.corpora {ours}")
    assert known == stored
    assert corpora == await shared_owner(f"SELECT count(*), sum(words_count)::bigint FROM retrieval.chunks {ours}")


async def test_an_old_citation_of_an_unchanged_passage_is_still_found(client: Any):
    await client.ingest("d1", old_text("first"))
    cited = (await client.search("part2", mode="keyword")).hits[0]
    await client.ingest("d1", "A new beginning. " * 60 + "\n\n" + old_text("first"))

    hits = (await client.search("part2", mode="keyword")).hits

    assert (hits[0].chunk_id, hits[0].text) == (cited.chunk_id, cited.text)


async def test_a_documents_text_is_given_as_it_was_read(client: Any):
    text = "\n\n\n".join(f"Part {n}.\t" + "Filler words. " * 90 for n in range(3)).strip()
    await client.ingest("d1", text)

    read = await client.bus.ask(ReadDocument(tenant=client.tenant, document_id="d1"), DocumentText)
    hits = (await client.search("filler", mode="keyword", top_k=50)).hits

    assert read.text == text
    assert {text[hit.start : hit.end] == hit.text for hit in hits} == {True}


async def test_an_unchanged_document_is_not_indexed_again(client: Any, monkeypatch: Any):
    await client.ingest("d1", old_text("first"), metadata={"shelf": 1})
    embed = LexicalHash.embed
    embedded: list[Any] = []

    async def watched(self: LexicalHash, texts: Any, **more: Any) -> Any:
        embedded.append(texts)
        return await embed(self, texts, **more)

    monkeypatch.setattr(LexicalHash, "embed", watched)
    again = await client.ingest("d1", old_text("first"), metadata={"shelf": 2}, trust="untrusted")
    hit = (await client.search("zebra", mode="keyword")).hits[0]

    assert (again.status, again.unchanged, again.chunks_done, again.trust) == ("ready", True, 4, "untrusted")
    assert (embedded, hit.metadata, hit.untrusted) == ([], {"shelf": 2}, True)


async def test_another_name_or_text_is_indexed_again(client: Any):
    await client.ingest("d1", "One zebra.")
    renamed = await client.ingest("d1", "One zebra.", name="Zoo")
    changed = await client.ingest("d1", "Two zebras.", name="Zoo")

    assert (renamed.unchanged, changed.unchanged) == (False, False)
    assert [(hit.document, hit.text) for hit in (await client.search("zebra", mode="keyword")).hits] == [
        ("Zoo", "Two zebras.")
    ]


async def test_a_document_that_failed_is_tried_again(client: Any):
    await client.ingest("d1", "One zebra.")
    failed = await client.ingest("d1", "")
    again = await client.ingest("d1", "One zebra.")

    assert (failed.status, again.status, again.chunks_done) == ("failed", "ready", 1)
