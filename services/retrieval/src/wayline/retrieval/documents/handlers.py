"""What is done with each message about documents."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson
import structlog

from wayline.chassis import Delivery
from wayline.chassis.claim_check.claims import claimed_bytes
from wayline.contracts import headers as h
from wayline.contracts.base import Message
from wayline.contracts.document_changes import ChangeDocument, ChunkPage, ListChunks
from wayline.contracts.errors import NotFound, Reject
from wayline.contracts.knowledge import (
    AcceptDocument,
    AttachmentList,
    AttachmentPiece,
    DeleteDocument,
    DescribeAttachments,
    Document,
    DocumentDeleted,
    DocumentPage,
    DocumentText,
    GetDocument,
    IndexDocument,
    ListDocuments,
    ReadAttachment,
    ReadDocument,
    ReserveUpload,
    UploadReserved,
)
from wayline.retrieval.documents.change_documents import DocumentChanges
from wayline.retrieval.documents.deleted_documents import DeletedDocuments
from wayline.retrieval.documents.document_owners import DocumentOwners
from wayline.retrieval.documents.document_table import DocumentTable
from wayline.retrieval.documents.index_document import Indexer
from wayline.retrieval.documents.originals import Originals
from wayline.retrieval.documents.uploads import UploadTable
from wayline.retrieval.storable import storable, storable_json

log = structlog.get_logger()

CURSOR_SIGN = "\n"
GIVEN_UP = "This document could not be indexed ({code}): {reason}. Send it again when that is mended."
REASON_MAX = 500
NO_ROOM = (
    "the large documents of tenant {tenant!r} may take {most:,} bytes of the bus, within 30 days, and {size:,} more do "
    "not fit: delete documents, or raise WAYLINE_RETRIEVAL_UPLOADS_PER_TENANT_MAX_BYTES"
)


@dataclass(frozen=True, slots=True)
class DocumentHandlers:
    """One coroutine per message heard."""

    documents: DocumentTable
    originals: Originals
    owners: DocumentOwners
    uploads: UploadTable
    indexer: Indexer
    deleted: DeletedDocuments
    changes: DocumentChanges
    stream_last: Callable[[], Awaitable[int]]
    """Returns the last sequence of the stream of index messages."""

    async def on_index(self, asked: IndexDocument, delivery: Delivery) -> Sequence[Message]:
        """Index a document. What is wrong with the document is in its row, never in a dead letter."""

        stored = claimed_bytes(delivery.body) if h.CLAIMS in delivery.headers else {}
        if stored:
            # Nobody could be asked when they were stored, or an older gateway did not ask.
            await self.uploads.note(asked.tenant, stored)
        await self.owners.note(asked.tenant, asked.document_id, asked.user_id)
        await self.indexer.index(
            asked,
            sequence=delivery.sequence,
            first_delivery=delivery.deliveries == 1,
            stream_last=self.stream_last,
            payloads=tuple(stored),
        )
        return []

    async def on_given_up(self, delivery: Delivery, code: str, reason: str) -> None:
        """Say in a document's row that its message became a dead letter, so that nobody waits for it for ever."""
        try:
            document_id = orjson.loads(delivery.body)["document_id"]
        except (ValueError, KeyError, TypeError):
            return
        if not isinstance(document_id, str) or storable(document_id) != document_id:
            # No row has such an id, and no column could be asked for it.
            return
        tenant = IndexDocument.address(delivery.subject)["tenant"]
        error = GIVEN_UP.format(code=code, reason=storable(reason)[:REASON_MAX])
        await self.documents.give_up(tenant, document_id, delivery.sequence, error)

    async def on_accept(self, asked: AcceptDocument) -> Document:
        """Note a document as queued, and say how far it is."""
        name = storable(asked.name) or asked.document_id
        found = await self.documents.accept(asked, name=name, metadata=storable_json(asked.metadata))
        if found is None:
            raise NotFound("document", asked.document_id)
        await self.owners.note(asked.tenant, asked.document_id, asked.user_id)
        return found

    async def on_get(self, asked: GetDocument) -> Document:
        """Say how far a document is."""
        return await self._found(asked)

    async def _found(self, asked: GetDocument | ChangeDocument | ListChunks) -> Document:
        """Return a document that the asker may see. Raises NotFound."""
        found = await self.documents.get(asked.tenant, asked.document_id, seen_by=asked.seen_by)
        if found is None:
            raise NotFound("document", asked.document_id)
        return found

    async def on_change(self, asked: ChangeDocument) -> Document:
        """Change what describes a document."""
        await self.changes.change(asked)
        # Its sender is told, also one who may not see it now.
        found = await self.documents.get(asked.tenant, asked.document_id)
        if found is None:
            raise NotFound("document", asked.document_id)
        return found

    async def on_chunks(self, asked: ListChunks) -> ChunkPage:
        """Show a document's passages."""
        await self._found(asked)
        return await self.changes.chunks(asked)

    async def on_describe(self, asked: DescribeAttachments) -> AttachmentList:
        """Say what is kept of documents."""
        return await self.originals.describe(asked.tenant, asked.document_ids, seen_by=asked.seen_by)

    async def on_read(self, asked: ReadAttachment) -> AttachmentPiece:
        """Give a piece of the bytes that are meant."""
        return await self.originals.piece(asked)

    async def on_text(self, asked: ReadDocument) -> DocumentText:
        """Give a piece of a document's text."""
        may = await self.documents.may_be_found(asked.tenant, asked.document_id, asked.audience or ())
        found = await self.documents.text(asked.tenant, asked.document_id, asked.position) if may else None
        if found is None:
            raise NotFound("document", asked.document_id)
        return found

    async def on_list(self, asked: ListDocuments) -> DocumentPage:
        """List documents, the newest first."""
        after = read_cursor(asked.cursor) if asked.cursor else None
        name = None if asked.name is None else storable(asked.name)
        collection = None if asked.collection is None else storable(asked.collection)
        wanted = {"name": name, "status": asked.status, "collection": collection, "language": asked.language}
        wanted["seen_by"] = asked.seen_by
        found = await self.documents.page(asked.tenant, limit=asked.limit + 1, after=after, **wanted)
        page = found[: asked.limit]
        return DocumentPage(
            documents=tuple(page), next_cursor=cursor_after(page[-1]) if len(found) > asked.limit else None
        )

    async def on_delete(self, asked: DeleteDocument) -> DocumentDeleted:
        """Delete a document, its chunks and its uploads. An index message of before that comes late is dropped."""
        last = await self.stream_last()
        chunks = await self.documents.delete(asked.tenant, asked.document_id, last=last, seen_by=asked.seen_by)
        if chunks is None:
            raise NotFound("document", asked.document_id)
        await self.owners.forget(asked.tenant, asked.document_id)
        await self.deleted.clear(asked.tenant)
        return DocumentDeleted(document_id=asked.document_id, chunks_deleted=chunks)

    async def on_reserve(self, asked: ReserveUpload) -> UploadReserved:
        """Count an object that is about to be stored, or say why it may not be."""
        if await self.uploads.reserve(asked.tenant, asked.name, asked.size_bytes):
            return UploadReserved()
        # What deleted documents left for messages that have been handled since.
        await self.deleted.clear(asked.tenant)
        if await self.uploads.reserve(asked.tenant, asked.name, asked.size_bytes):
            return UploadReserved()
        most = self.uploads.per_tenant_max_bytes
        return UploadReserved(full=NO_ROOM.format(tenant=asked.tenant, most=most, size=asked.size_bytes))


def cursor_after(document: Document) -> str:
    """Make the cursor of the page that begins after a document."""
    assert document.created_at is not None
    return base64.urlsafe_b64encode(
        f"{document.created_at.isoformat()}{CURSOR_SIGN}{document.document_id}".encode()
    ).decode()


def read_cursor(cursor: str) -> tuple[datetime, str]:
    """Read the place that a cursor stands for. Raises Reject for one that is not ours."""
    try:
        created_at, document_id = base64.urlsafe_b64decode(cursor).decode().split(CURSOR_SIGN, 1)
        at = datetime.fromisoformat(created_at)
    except (binascii.Error, ValueError):
        raise _foreign() from None
    if at.utcoffset() != timedelta(0) or storable(document_id) != document_id:
        raise _foreign()
    return at, document_id


def _foreign() -> Reject:
    return Reject("this cursor is not one of ours: ask for the first page again", code="invalid_cursor")
