"""Every kind of document goes in over the bus and its passages come out; what cannot be read says why in its row."""

import base64
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.contracts import headers as h
from wayline.contracts.errors import Refused, Reject
from wayline.contracts.knowledge import AcceptDocument, Document, DocumentPage, ListDocuments
from wayline.documents.file_kinds import DOCX
from wayline.retrieval.documents import index_document
from wayline.retrieval.documents.document_table import DocumentTable
from wayline.retrieval.embeddings.embedding import LexicalHash
from wayline.testkit import Platform, until
from wayline.testkit.hostile_files import MEGABYTE, dense_pdf, zip_bomb

from .conftest import Client, Start

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

HTML = b"""<html><head><title>Bees</title></head><body><nav>Home | About</nav><article><h1>Bees</h1>
<p>A honeybee dances to tell the others where the meadow is, and how far they have to fly for it.</p>
<p>The queen lays up to two thousand eggs a day in early summer, when the colony grows.</p>
</article></body></html>"""


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.fixture
def client(tenant_client: Any) -> Client:
    return tenant_client


async def test_plain_text_is_found_again(client: Any):
    document = await client.ingest("d1", "The tortoise wins the race.", name="Fables", metadata={"shelf": 3})

    assert document.model_copy(update={"created_at": None}) == Document(
        document_id="d1",
        name="Fables",
        status="ready",  # pyright: ignore[reportArgumentType]
        chunks_done=1,
        chunks_total=1,
        chunks_embedded=1,
        size_bytes=27,
        metadata={"shelf": 3},
        embedding_model="lexical-hash-384",
        language="en",
        sha256=sha256(b"The tortoise wins the race.").hexdigest(),
    )
    [hit] = (await client.search("who wins?")).hits
    assert (hit.document_id, hit.document, hit.text, hit.metadata) == (
        "d1",
        "Fables",
        "The tortoise wins the race.",
        {"shelf": 3},
    )


async def test_markdown_passages_know_their_headings_and_are_found_by_them(client: Any):
    text = "# Handbook\n\n" + "Preface. " * 60 + "\n\n## Gearbox\n\n" + "Change the oil every year. " * 30
    await client.ingest("d1", text, name="car.md")

    hit = (await client.search("gearbox oil")).hits[0]

    assert hit.metadata == {"headings": ["Handbook", "Gearbox"]}
    assert hit.text.startswith("## Gearbox")


async def test_html_is_read_without_its_menus(client: Any):
    await client.ingest("d1", content_base64=encoded(HTML), media_type="text/html", name="bees")

    [hit] = (await client.search("where is the meadow?")).hits

    assert "honeybee dances" in hit.text
    assert "Home | About" not in hit.text


async def test_the_language_of_a_document_is_told(client: Any):
    german = await client.ingest("d1", "Der Vertrag kann mit einer Frist von drei Monaten gekündigt werden.")
    numbers = await client.ingest("d2", "17 18 19")

    assert (german.language, numbers.language) == ("de", None)


async def test_a_pdf_is_read_page_by_page(client: Any, pdf: Callable[..., bytes]):
    content = pdf("The first page is about glaciers.", "The second page is about deserts.")
    await client.ingest("d1", content_base64=encoded(content), media_type="application/pdf", name="climate.pdf")

    hit = (await client.search("deserts", mode="keyword")).hits[0]

    assert (hit.text, hit.metadata) == ("The second page is about deserts.", {"page": 2})


async def test_a_text_of_several_messages_comes_by_claim_check(client: Any):
    text = "\n\n".join(f"Paragraph {n} tells of the wombat number w{n}. " + "Filler words. " * 60 for n in range(600))
    assert len(text) > 2 * MESSAGE_MAX

    document = await client.ingest("big", text)

    assert document.status == "ready"
    assert document.chunks_done == document.chunks_total > 500
    assert "number w555." in (await client.search("w555", mode="keyword")).hits[0].text


async def test_progress_is_shown_while_a_document_is_indexed(client: Any, monkeypatch: Any):
    seen: list[tuple[str, int, int | None]] = []
    embed = LexicalHash.embed

    async def watched(self: LexicalHash, texts: Any, **more: Any) -> Any:
        now = await client.get("d1")
        seen.append((now.status, now.chunks_done, now.chunks_total))
        return await embed(self, texts, **more)

    monkeypatch.setattr(LexicalHash, "embed", watched)
    monkeypatch.setattr(index_document, "EMBED_BATCH", 2)
    await client.ingest("d1", "\n\n".join(f"Word{n} " * 120 for n in range(5)))

    assert seen == [("indexing", 0, 5), ("indexing", 2, 5), ("indexing", 4, 5)]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"text": ""}, "empty"),
        ({"text": " \n\n "}, "empty"),
        ({"content_base64": encoded(bytes(range(256)) * 40)}, "binary data"),
        ({"content_base64": "not base64"}, "base64"),
        ({"content_base64": encoded(b"%PDF-1.7\n\x00garbage"), "media_type": "application/pdf"}, "damaged"),
        ({"content_base64": encoded(b"GIF89a"), "media_type": "application/pdf"}, "not a PDF"),
        (
            {"content_base64": encoded(b"\x00\x00\x00 ftyp"), "media_type": "video/mp4"},
            "send text, Markdown, HTML, PDF, DOCX",
        ),
        ({"text": "x", "metadata": {"large": "y" * 20_000}}, "WAYLINE_RETRIEVAL_METADATA_BYTES_MAX"),
    ],
)
async def test_a_bad_document_fails_with_advice_and_spares_its_neighbours(
    client: Any, module_platform: Platform, fields: dict[str, Any], says: str
):
    await client.send("bad", **fields)
    good = await client.ingest("good", "A perfectly good text.")
    bad = await until(lambda: client.ended("bad"), why="the bad document fails")

    assert (bad.status, bad.chunks_done, bad.chunks_total) == ("failed", 0, None)
    assert says in bad.error
    assert good.status == "ready"
    await client.idle()
    assert await dead(client, module_platform) == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_a_hostile_document_fails_and_other_tenants_go_on(start: Start, platform: Platform):
    client: Any = Client(platform.bus)
    await start(page_seconds_max=0.5, index_slots=2)
    page = encoded(dense_pdf(8 * MEGABYTE))
    for n in range(3):
        await client.send(f"page{n}", content_base64=page, media_type="application/pdf", tenant="evil")
    await client.send("bomb", content_base64=encoded(zip_bomb(100 * MEGABYTE)), media_type=DOCX, tenant="evil")
    good = await client.ingest("good", "A perfectly good text.")
    bomb = await until(lambda: client.ended("bomb", tenant="evil"), why="the bomb is refused")
    slow = await until(lambda: client.ended("page2", tenant="evil"), why="the slow page is refused")

    assert (good.status, bomb.status, slow.status) == ("ready", "failed", "failed")
    assert "larger than" in bomb.error and "page 1 of the PDF took longer than 0.5 s" in slow.error


async def test_an_encrypted_pdf_fails_unless_its_password_is_empty(client: Any, pdf: Callable[..., bytes]):
    closed = encoded(pdf("Secret.", password="hunter2"))
    opened = encoded(pdf("Not that secret.", password=""))

    refused = await client.ingest("closed", content_base64=closed, media_type="application/pdf")
    read = await client.ingest("open", content_base64=opened, media_type="application/pdf")

    assert (refused.status, refused.error) == (
        "failed",
        "The PDF is encrypted: remove its password and send it again.",
    )
    assert read.status == "ready"


async def test_a_pdf_of_pictures_asks_for_text_recognition(client: Any, pdf: Callable[..., bytes]):
    document = await client.ingest("scan", content_base64=encoded(pdf("", "")), media_type="application/pdf")

    assert document.status == "failed"
    assert "OCR" in document.error


async def test_nul_bytes_and_half_characters_do_no_harm(client: Any):
    text = "A zero\x00 and " + "words " * 60
    document = await client.ingest("d1", text, name="na\x00me", metadata={"k\x00": ["v\x00", float("inf")]})

    assert (document.status, document.name, document.metadata) == ("ready", "name", {"k": ["v", None]})
    assert (await client.search("zero\x00", mode="keyword")).hits[0].text.startswith("A zero and words")


async def test_a_document_is_known_before_its_turn_and_never_goes_back(client: Any):
    accept = AcceptDocument(tenant=client.tenant, document_id="d1", name="Fables", size_bytes=10)

    queued = await client.bus.ask(accept, Document)
    await client.ingest("d1", "The tortoise wins.", name="Fables")
    late = await client.bus.ask(accept, Document)

    assert (queued.status, queued.chunks_total) == ("queued", None)
    assert (late.status, late.chunks_total) == ("ready", 1)


async def test_a_newer_sequence_queues_the_document_again(client: Any):
    sequence = await client.send("d1", "The tortoise wins.")
    await until(lambda: client.ended("d1"), why="the document is ready")

    newer = AcceptDocument(tenant=client.tenant, document_id="d1", name="d1", sequence=sequence + 1)
    older = newer.model_copy(update={"sequence": sequence})

    assert (await client.bus.ask(older, Document)).status == "ready"
    assert (await client.bus.ask(newer, Document)).status == "queued"


async def test_documents_are_listed_newest_first_page_by_page(client: Any):
    for n in range(5):
        await client.ingest(f"d{n}", "Some text.")

    first = await client.bus.ask(ListDocuments(tenant=client.tenant, limit=3), DocumentPage)
    second = await client.bus.ask(ListDocuments(tenant=client.tenant, limit=3, cursor=first.next_cursor), DocumentPage)

    assert [document.document_id for document in first.documents] == ["d4", "d3", "d2"]
    assert [document.document_id for document in second.documents] == ["d1", "d0"]
    assert second.next_cursor is None


@pytest.mark.parametrize(
    "inside", [None, "2026-01-01T00:00:00+00:00\na\x00b", "0001-01-01T00:00:00+14:00\nd1", "2026-01-01\nd1"]
)
async def test_a_cursor_that_is_none_of_ours_is_refused(client: Any, inside: str | None):
    cursor = "nonsense" if inside is None else base64.urlsafe_b64encode(inside.encode()).decode()

    with pytest.raises(Refused, match="cursor"):
        await client.bus.ask(ListDocuments(tenant=client.tenant, cursor=cursor), DocumentPage)


async def test_a_document_whose_message_became_a_dead_letter_says_so(
    client: Any, module_platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: Any) -> Any:
        raise Reject("nobody knows", code="mystery")

    monkeypatch.setattr(DocumentTable, "replace", broken)
    document = await client.ingest("d1", "The tortoise wins.")

    assert document.status == "failed"
    assert "(mystery): nobody knows" in document.error
    await until(lambda: dead(client, module_platform), why="the message is put aside")


async def test_a_message_with_an_unstorable_id_is_dead_lettered(client: Any, module_platform: Platform):
    body = json.dumps({"document_id": "a\0b", "name": "n", "text": "t"}).encode()
    await client.bus.js.publish(f"documents.index.{client.tenant}", body)

    await client.idle()

    assert await dead(client, module_platform) == 1


async def dead(client: Any, platform: Platform) -> int:
    """Count the dead letters of the client's tenant."""
    return [letter[h.TENANT] for letter in await platform.dead_letters()].count(client.tenant)


async def test_each_passage_of_a_table_is_found_by_its_columns(client: Any):
    rows = "\n".join(f"lamp{n},{n}.50,{n * 7}" for n in range(200))

    await client.ingest("stock", f"article,price,pieces\n{rows}", name="stock.csv", media_type="text/csv")

    hits = (await client.search("price of lamp150", mode="keyword")).hits
    assert "lamp150,150.50,1050" in hits[0].text
    assert hits[0].metadata["headings"] == ["article,price,pieces"]
    assert hits[0].why["covered"] == 1


async def test_documents_are_listed_by_name_and_status(client: Any):
    for document_id, name in (("a", "100% wool.md"), ("b", "100s_wool.md"), ("c", "wool/a.md")):
        await client.ingest(document_id, "wool", name=name)
    await client.ingest("d", None, content_base64="AAAA", name="wool/b.bin")

    async def listed(**asked: Any) -> list[str]:
        page = await client.bus.ask(ListDocuments(tenant=client.tenant, **asked), DocumentPage)
        return sorted(document.document_id for document in page.documents)

    assert await listed(name="100% wool.md") == ["a"]
    assert await listed(name="wool/*") == ["c", "d"]
    assert await listed(name="*_wool*") == ["b"]
    assert await listed(status="failed") == ["d"]
    assert await listed(name="wool/*", status="ready") == ["c"]
    assert await listed(name="wool") == []


async def test_documents_are_listed_by_collection_and_language(client: Any):
    german = "Die Wolle der Schafe wird im Frühjahr geschoren und danach gewaschen."
    await client.ingest("a", german, name="a.md", collection="wool")
    await client.ingest("b", "The wool of the sheep is cut in spring and then it is washed.", collection="wool")
    await client.ingest("c", german, name="c.md", collection="sheep")

    async def listed(**asked: Any) -> list[str]:
        page = await client.bus.ask(ListDocuments(tenant=client.tenant, **asked), DocumentPage)
        return sorted(document.document_id for document in page.documents)

    assert await listed(collection="wool") == ["a", "b"]
    assert await listed(language="de") == ["a", "c"]
    assert await listed(collection="wool", language="de") == ["a"]
    assert await listed(collection="wo%") == []
