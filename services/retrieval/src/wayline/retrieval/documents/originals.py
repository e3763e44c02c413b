"""The bytes that are kept of documents, as jobs are given them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from wayline.contracts.chat import Attachment
from wayline.contracts.errors import Reject
from wayline.contracts.knowledge import AttachmentList, AttachmentPiece, DocumentStatus, ReadAttachment
from wayline.retrieval.storable import storable
from wayline.store import Record, Store

WAITING = frozenset({DocumentStatus.QUEUED, DocumentStatus.INDEXING})
NOT_KEPT = "it was added before originals were kept: add it again"


class Originals:
    """What `documents.describe` and `documents.read` are answered from."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def describe(self, tenant: str, document_ids: Sequence[str]) -> AttachmentList:
        """Return what is kept of each document that is there; unknown ones are left out."""
        # Others no document has, and no column could hold.
        possible = [document_id for document_id in document_ids if storable(document_id) == document_id]
        rows = await self._store.fetch(tenant, self._store.sql.describe_originals, tenant, possible)
        waiting = tuple(row["document_id"] for row in rows if row["status"] in WAITING)
        ended = [row for row in rows if row["status"] not in WAITING]
        return AttachmentList(
            attachments=tuple(_attachment(row) for row in ended if row["sha256"]),
            waiting=waiting,
            refused={row["document_id"]: row["error"] or NOT_KEPT for row in ended if not row["sha256"]},
        )

    async def piece(self, asked: ReadAttachment) -> AttachmentPiece:
        """Return a piece of the bytes that are meant. Raises Reject when the document is gone, or has others by now."""
        sql = self._store.sql.read_original
        row = await self._store.fetchrow(asked.tenant, sql, asked.tenant, asked.document_id, asked.offset, asked.length)
        if row is None:
            raise Reject(f"no document {asked.document_id!r}: it was deleted", code="unknown_document", status=404)
        if row["sha256"] != asked.sha256:
            raise Reject(
                f"document {asked.document_id!r} has other content than when the job was given it",
                code="document_changed",
                status=409,
            )
        return AttachmentPiece(content_base64=b64encode(row["piece"]).decode(), size_bytes=row["size_bytes"])


def _attachment(row: Record) -> Attachment:
    return Attachment(**{name: row[name] for name in Attachment.model_fields})
