"""A document's own bytes are kept for jobs to be given, until it is replaced or deleted, and for its tenant only."""

from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any

import pytest

from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.chassis.topology import PAYLOADS, UPLOADS
from wayline.contracts.chat import Attachment
from wayline.contracts.errors import Refused
from wayline.contracts.knowledge import (
    PIECE_MAX_BYTES,
    AcceptDocument,
    AttachmentList,
    AttachmentPiece,
    DeleteDocument,
    DescribeAttachments,
    Document,
    DocumentDeleted,
    ReadAttachment,
)
from wayline.documents.file_kinds import DOCX
from wayline.testkit.media import pdf, png
from wayline.testkit.office_files import docx, eml

from .conftest import Client

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture
def client(tenant_client: Any) -> Client:
    return tenant_client


async def upload(
    client: Any, document_id: str, content: bytes, media_type: str, *, tenant: str | None = None
) -> Document:
    encoded = b64encode(content).decode()
    return await client.ingest(document_id, tenant=tenant, media_type=media_type, content_base64=encoded)


async def described(client: Any, *document_ids: str, tenant: str | None = None) -> AttachmentList:
    return await client.bus.ask(
        DescribeAttachments(tenant=tenant or client.tenant, document_ids=document_ids), AttachmentList
    )


async def kept(client: Any, document_id: str, digest: str, *, tenant: str | None = None) -> bytes:
    """All of a document's bytes, piece by piece."""
    content, whole = b"", None
    while whole is None or len(content) < whole:
        asked = ReadAttachment(
            tenant=tenant or client.tenant, document_id=document_id, sha256=digest, offset=len(content)
        )
        piece = await client.bus.ask(asked, AttachmentPiece)
        content, whole = content + b64decode(piece.content_base64), piece.size_bytes
    return content


async def stored_objects(client: Any) -> list[int]:
    """Messages in each object store."""
    return [(await client.bus.js.stream_info(f"OBJ_{bucket}")).state.messages for bucket in (PAYLOADS, UPLOADS)]


async def refusal(client: Any, document_id: str, digest: str, *, tenant: str | None = None) -> str:
    with pytest.raises(Refused) as caught:
        await kept(client, document_id, digest, tenant=tenant)
    return caught.value.code


async def test_an_image_is_ready_without_passages_and_says_what_it_is(client: Any):
    image = png(640, 480)

    document = await upload(client, "cat", image, "image/png")

    digest = sha256(image).hexdigest()
    assert (document.status, document.chunks_total, document.error) == ("ready", 0, None)
    assert (document.sha256, document.width, document.height) == (digest, 640, 480)
    found = await described(client, "cat", "nobody")
    about = {"sha256": digest, "size_bytes": len(image), "width": 640, "height": 480}
    cat = Attachment(document_id="cat", name="cat", media_type="image/png", **about)
    assert found == AttachmentList(attachments=(cat,))
    assert await kept(client, "cat", digest) == image


async def test_reading_a_large_pdf_in_pieces_stores_no_object(client: Any):
    content = pdf("A lease is renewed.") + b"%" + bytes(range(256)) * 3_000
    await upload(client, "big", content, "application/pdf")
    objects = await stored_objects(client)
    digest = sha256(content).hexdigest()

    read = await kept(client, "big", digest)

    assert read == content and len(content) > 4 * PIECE_MAX_BYTES > MESSAGE_MAX
    assert await stored_objects(client) == objects
    [about] = (await described(client, "big")).attachments
    assert (about.pages, about.media_type, about.text_bytes) == (1, "application/pdf", len("A lease is renewed."))


async def test_a_scanned_pdf_is_kept_though_nothing_is_found_in_it(client: Any):
    content = pdf("", "")

    document = await upload(client, "scan", content, "application/pdf")

    assert (document.status, document.pages) == ("failed", 2)
    assert await kept(client, "scan", sha256(content).hexdigest()) == content


async def test_a_job_is_given_a_files_text_beside_its_bytes(client: Any, shared_owner: Any):
    content = docx("The tide is high. " * 20_000)
    digest = sha256(content).hexdigest()
    await upload(client, "report.docx", content, DOCX)

    [given] = (await described(client, "report.docx")).attachments

    text = ("The tide is high. " * 20_000).strip().encode()
    assert (given.media_type, given.sha256, given.original_sha256) == ("text/plain", sha256(text).hexdigest(), digest)
    assert (given.size_bytes, given.text_bytes, given.untrusted) == (len(text), len(text), False)
    assert await kept(client, "report.docx", given.sha256) == text
    assert await kept(client, "report.docx", digest) == content
    assert await refusal(client, "report.docx", "0" * 64) == "document_changed"

    # A version that models read takes its place, and so does one of an older service, which knows no texts.
    await upload(client, "report.docx", b"Low.", "text/plain")
    [given] = (await described(client, "report.docx")).attachments
    assert (given.media_type, given.original_sha256, given.size_bytes) == ("text/plain", None, 4)
    await upload(client, "report.docx", content, DOCX)
    await shared_owner(
        "UPDATE retrieval.originals SET content = 'other', sha256 = repeat('1', 64), media_type = "
        f"'application/vnd.openxmlformats-officedocument.wordprocessingml.document' WHERE tenant = '{client.tenant}'"
    )
    assert "reindex" in (await described(client, "report.docx")).refused["report.docx"]


async def test_a_mails_text_holds_the_words_of_strangers(client: Any):
    await upload(client, "mail.eml", eml("The tide is high."), "message/rfc822")

    [given] = (await described(client, "mail.eml")).attachments

    assert given.untrusted and given.media_type == "text/plain"
    text = await kept(client, "mail.eml", given.sha256)
    assert text.startswith(b"From: ada@example.org") and b"The tide is high." in text and b"base64" not in text


async def test_other_bytes_than_those_that_are_meant_are_refused(client: Any):
    first, second = png(8, 8), png(8, 8, shade=9)
    await upload(client, "cat", first, "image/png")
    await upload(client, "cat", second, "image/png")

    assert await refusal(client, "cat", sha256(first).hexdigest()) == "document_changed"
    assert await kept(client, "cat", sha256(second).hexdigest()) == second


async def test_an_unreadable_version_keeps_the_previous_bytes(client: Any):
    image = png(8, 8)
    await upload(client, "cat", image, "image/png")

    document = await upload(client, "cat", b"no image", "image/png")

    assert document.status == "failed"
    assert await kept(client, "cat", sha256(image).hexdigest()) == image


async def test_the_bytes_are_deleted_with_the_document(client: Any, shared_owner: Any):
    digest = sha256(b"hello there").hexdigest()
    await client.ingest("note", "hello there")
    assert await kept(client, "note", digest) == b"hello there"

    await client.bus.ask(DeleteDocument(tenant=client.tenant, document_id="note"), DocumentDeleted)

    assert await refusal(client, "note", digest) == "unknown_document"
    assert await described(client, "note") == AttachmentList()
    assert await shared_owner(f"SELECT count(*) FROM retrieval.originals WHERE tenant = '{client.tenant}'") == [(0,)]


async def test_a_document_that_is_still_being_read_says_so(client: Any):
    await client.bus.ask(AcceptDocument(tenant=client.tenant, document_id="later", name="later"), Document)

    assert await described(client, "later") == AttachmentList(waiting=("later",))


async def test_another_tenants_document_is_unknown(client: Any):
    image = png(8, 8)
    await upload(client, "cat", image, "image/png", tenant="globex")

    assert await described(client, "cat") == AttachmentList()
    assert await refusal(client, "cat", sha256(image).hexdigest()) == "unknown_document"
    assert await kept(client, "cat", sha256(image).hexdigest(), tenant="globex") == image
