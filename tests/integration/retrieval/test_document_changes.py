"""A document is described anew without being indexed again, and nobody sees what a change may have kept from them."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts.document_changes import ChangeDocument, ChunkPage, DocumentChange, ListChunks
from wayline.contracts.knowledge import AcceptDocument, Document, Filter
from wayline.testkit import Platform, until

from .conftest import Client, Start

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture
def client(tenant_client: Any) -> Client:
    return tenant_client


async def change(client: Any, document_id: str, **fields: Any) -> Document:
    asked = ChangeDocument(tenant=client.tenant, document_id=document_id, change=DocumentChange(**fields))
    return await client.bus.ask(asked, Document)


async def found(client: Any, query: str = "tortoise", **fields: Any) -> list[str]:
    return sorted(hit.document_id for hit in (await client.search(query, mode="keyword", **fields)).hits)


async def test_searches_see_a_change_at_once(client: Any, shared_owner: Any):
    old = {"year": 2020, "old": 1}
    before = await client.ingest(
        "d", "# Top\n\nThe tortoise.", name="page.md", media_type="text/markdown", metadata=old
    )
    # An earlier version copied metadata into passages.
    copied = """UPDATE retrieval.chunks SET metadata = metadata || '{"year": 2020, "old": 1}'"""
    await shared_owner(f"{copied} WHERE tenant = '{client.tenant}'")

    changed = await change(client, "d", metadata={"year": 2024}, collection="fables", trust="untrusted")

    assert changed == before.model_copy(
        update={"metadata": {"year": 2024}, "collection": "fables", "trust": "untrusted"}
    )
    [hit] = (await client.search("tortoise")).hits
    assert hit.metadata == {"year": 2024, "headings": ["Top"]}
    assert (hit.collection, hit.untrusted) == ("fables", True)
    assert await found(client, filter=Filter(metadata={"year": 2024, "headings": ["Top"]})) == ["d"]
    assert await found(client, filter=Filter(metadata={"year": 2020})) == []
    assert await found(client, filter=Filter(metadata={"old": 1})) == []
    assert await found(client, filter=Filter(metadata={"year": 2024, "headings": ["Else"]})) == []
    assert await found(client, filter=Filter.model_validate({"where": {"year": {"gt": 2023}}})) == ["d"]
    assert await found(client, filter=Filter(collections=("fables",))) == ["d"]
    await change(client, "d", audience=("ann",))
    assert (await found(client), await found(client, audience=("ann",))) == ([], ["d"])
    await change(client, "d", audience=None, metadata=None)
    assert (await client.search("tortoise")).hits[0].metadata == {"headings": ["Top"]}


@pytest.mark.asyncio(loop_scope="function")
async def test_a_new_name_is_shown_at_once_and_found_soon(
    start: Start, platform: Platform, counted: Any, owner: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wayline.retrieval.search.word_renewal.AGAIN_S", 0.1)
    await start()
    client = Client(platform.bus)
    await client.ingest("d", "The tortoise.", name="quarterly")

    await change(client, "d", name="yearbook")

    assert (await client.search("tortoise")).hits[0].document == "yearbook"

    async def renewed() -> bool:
        return await found(client, "yearbook") == ["d"]

    await until(renewed, why="the words of the new name are found")
    assert await found(client, "quarterly") == []
    await counted()
    known = await owner("SELECT term, chunks FROM retrieval.terms WHERE term IN ('yearbook', 'quarter') AND chunks > 0")
    assert known == [("yearbook", 1)]


async def test_a_change_stays_until_a_later_version_says_otherwise(client: Any):
    said = {"metadata": {"a": 1}, "collection": "x"}
    await client.ingest("d", "The tortoise.", name="page", **said)
    await change(client, "d", audience=("ann",), trust="untrusted", metadata={"a": 2})

    same = await client.ingest("d", "The tortoise.", name="page", collection="x")
    other = await client.ingest("d", "The tortoise and the hare.", name="page", collection="y")
    says = await client.ingest("d", "The tortoise.", name="page", audience=("bob",), trust="trusted", metadata={"a": 3})
    silent = await client.ingest("d", "The hare.", name="page")

    shown = [(one.audience, one.trust, one.metadata, one.collection) for one in (same, other, says, silent)]
    assert shown == [
        (("ann",), "untrusted", {"a": 2}, "x"),
        (("ann",), "untrusted", {"a": 2}, "y"),
        (("bob",), "trusted", {"a": 3}, None),
        (None, "trusted", {}, None),
    ]
    assert same.unchanged and not other.unchanged


async def test_a_version_not_yet_in_place_opens_nothing_to_others(client: Any):
    await client.ingest("d", "The secret tortoise.", name="page", audience=("ann", "cid"), trust="untrusted")

    accepted = await client.bus.ask(
        AcceptDocument(tenant=client.tenant, document_id="d", name="page", sequence=10_000), Document
    )
    failed = await client.ingest("d", "", name="page", audience=("cid", "bob"), trust="trusted")

    assert (accepted.audience, accepted.trust) == (("ann", "cid"), "untrusted")
    assert (failed.status, failed.audience, failed.trust) == ("failed", ("cid",), "untrusted")
    assert [await found(client, audience=(name,)) for name in ("ann", "bob", "cid")] == [[], [], ["d"]]
    ready = await client.ingest("d", "The public tortoise.", name="page")
    assert (ready.audience, ready.trust) == (None, "trusted") and await found(client) == ["d"]


async def test_a_new_document_is_its_audiences_from_the_first_word(client: Any):
    accepted = await client.bus.ask(
        AcceptDocument(tenant=client.tenant, document_id="d", name="page", audience=("ann",)), Document
    )

    assert accepted.audience == ("ann",)
    asked = ChangeDocument(tenant=client.tenant, document_id="d", change=DocumentChange(audience=None))
    assert await client.refused(asked) == "document_not_ready"
    assert await client.refused(asked.model_copy(update={"seen_by": ("bob",)})) == "not_found"
    assert await client.refused(asked.model_copy(update={"document_id": "none"})) == "not_found"


async def test_passages_that_do_not_fit_one_message_are_paged(client: Any):
    text = "\n\n".join(f"{'tortoise ' * 100}{n}" for n in range(300))
    await client.ingest("d", text, name="page")

    shown, position = list[str](), 0
    while position is not None:
        page = await client.bus.ask(
            ListChunks(tenant=client.tenant, document_id="d", position=position, limit=500), ChunkPage
        )
        shown += [chunk.text for chunk in page.chunks]
        position = page.next_position

    assert " ".join(shown).split() == text.split()


async def test_a_near_duplicate_is_told_to_those_who_may_find_it(client: Any):
    text = " ".join(f"word{n * 7919 % 1000}" for n in range(400))
    await client.ingest("first", text, name="a")
    await client.ingest("foreign", text, tenant="globex", name="a")

    copy = await client.ingest("copy", f"Anew: {text}", name="b")
    hers = await client.ingest("hers", f"Mine: {text}", name="c", audience=("ann",))
    other = await client.ingest("other", " ".join(f"else{n}" for n in range(400)), name="d")
    await client.delete("first")
    await client.delete("copy")
    after = await client.ingest("after", f"Then: {text}", name="e")
    theirs = await client.ingest("theirs", f"Ours: {text}", name="f", audience=("ann", "bob"))
    ann = await client.ingest("ann", f"Again: {text}", name="g", audience=("ann",))

    assert copy.near_duplicate_of == "first" and copy.near_duplicate_share > 0.9
    assert hers.near_duplicate_of in ("first", "copy") and other.near_duplicate_of is None
    # "hers" is there, and no business of those who may find "after".
    assert after.near_duplicate_of is None and theirs.near_duplicate_of == "after"
    assert ann.near_duplicate_of in ("hers", "after", "theirs")
    # What it names is told no more when it is kept from others.
    await change(client, "after", audience=("ann",))
    assert (await client.get("theirs")).near_duplicate_of is None
