"""The bytes that are kept of documents, as jobs are given them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from wayline.contracts.chat import Attachment
from wayline.contracts.errors import Reject
from wayline.contracts.knowledge import (
    AttachmentList,
    AttachmentPiece,
    DocumentStatus,
    IndexDocument,
    ReadAttachment,
)
from wayline.llm.inputs import kind_of
from wayline.retrieval.errors import Unreadable
from wayline.retrieval.storable import storable
from wayline.store import Record, Store

WAITING = frozenset({DocumentStatus.QUEUED, DocumentStatus.INDEXING})
NOT_KEPT = "it was added before originals were kept: add it again"
NO_TEXT_KEPT = (
    "no model reads files of its kind, and its text was read before texts were kept: read it again with "
    "POST /v1/documents/{id}/reindex"
)


class Originals:
    """What `documents.describe` and `documents.read` are answered from."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def describe(
        self, tenant: str, document_ids: Sequence[str], *, seen_by: Sequence[str] | None
    ) -> AttachmentList:
        """Return what is kept of each document that is there for these names; unknown ones are left out."""
        # Others no document has, and no column could hold.
        possible = [document_id for document_id in document_ids if storable(document_id) == document_id]
        rows = await self._store.fetch(tenant, self._store.sql.describe_originals, tenant, possible, _listed(seen_by))
        waiting = tuple(row["document_id"] for row in rows if row["status"] in WAITING)
        ended = [row for row in rows if row["status"] not in WAITING]
        problems = {row["document_id"]: _problem(row) for row in ended}
        return AttachmentList(
            attachments=tuple(_attachment(row) for row in ended if problems[row["document_id"]] is None),
            waiting=waiting,
            refused={document_id: why for document_id, why in problems.items() if why is not None},
        )

    async def piece(self, asked: ReadAttachment) -> AttachmentPiece:
        """Return a piece of the bytes that are meant. Raises Reject when the document is gone, or has others by now."""
        sql = self._store.sql.read_original
        which = (asked.tenant, asked.document_id, asked.offset, asked.length, _listed(asked.seen_by), asked.sha256)
        row = await self._store.fetchrow(asked.tenant, sql, *which)
        if row is None:
            raise Reject(f"no document {asked.document_id!r}: it was deleted", code="unknown_document", status=404)
        if row["sha256"] != asked.sha256:
            raise Reject(
                f"document {asked.document_id!r} has other content than when the job was given it",
                code="document_changed",
                status=409,
            )
        return AttachmentPiece(content_base64=b64encode(row["piece"]).decode(), size_bytes=row["size_bytes"])

    async def whole(self, asked: IndexDocument) -> IndexDocument:
        """Return a document with what is kept of it, as it is described now. Raises Unreadable."""
        row = await self._store.fetchrow(asked.tenant, self._store.sql.whole_original, asked.tenant, asked.document_id)
        if row is None or row["content"] is None:
            raise Unreadable(f"Nothing is kept of this document: {NOT_KEPT}.")
        described = {name: row[name] for name in ("name", "media_type", "metadata", "trust", "collection")}
        whose = {"audience": None if row["audience"] is None else tuple(row["audience"])}
        content = {"content_base64": b64encode(row["content"]).decode(), "text": None, "url": None}
        return asked.model_copy(update={**described, **whose, **content, "valid_until": row["valid_until"]})


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)


def _problem(row: Record) -> str | None:
    """Return why a document cannot be given to a job; None: it can."""
    if not row["sha256"]:
        return row["error"] or NOT_KEPT
    return NO_TEXT_KEPT if kind_of(row["media_type"]) is None else None


def _attachment(row: Record) -> Attachment:
    return Attachment(**{name: row[name] for name in Attachment.model_fields})
