"""What describes a document is changed, and its passages are shown, without reading it again."""

from __future__ import annotations

import json
from collections.abc import Sequence

from wayline.contracts.document_changes import ChangeDocument, ChunkPage, DocumentChunk, ListChunks
from wayline.contracts.errors import NotFound, Reject
from wayline.contracts.knowledge import PIECE_MAX_BYTES
from wayline.retrieval.documents.originals import WAITING
from wayline.retrieval.storable import storable, storable_json
from wayline.store import Record, Store


class DocumentChanges:
    """What `documents.change` and `documents.chunks` are answered from."""

    def __init__(self, store: Store, *, metadata_bytes_max: int) -> None:
        self._store = store
        self._sql = store.sql
        self._metadata_bytes_max = metadata_bytes_max

    async def change(self, asked: ChangeDocument) -> None:
        """Change what is set. Raises NotFound, and Reject for what no document may be or while it is being read."""
        change, fields = asked.change, sorted(asked.change.model_fields_set)
        metadata = None if change.metadata is None else storable_json(change.metadata)
        self._check(asked, len(json.dumps(metadata)))
        tenant, document_id = asked.tenant, asked.document_id
        async with self._store.tenant(tenant) as conn:
            status = await conn.fetchval(self._sql.state_of_document, tenant, document_id, _listed(asked.seen_by))
            if status is None:
                raise NotFound("document", document_id)
            if status in WAITING:
                raise Reject(
                    f"{document_id!r} is still being read: change it when it is ready, or has failed",
                    code="document_not_ready",
                    status=409,
                )
            name = None if change.name is None else storable(change.name)
            collection = None if change.collection is None else storable(change.collection)
            values = (name, metadata, collection, _listed(change.audience), change.valid_until, change.trust)
            await conn.execute(self._sql.change_document, tenant, document_id, fields, *values)
            if "metadata" in fields:
                await conn.execute(self._sql.forget_copied_metadata, tenant, document_id)

    def _check(self, asked: ChangeDocument, metadata_bytes: int) -> None:
        for field in ("name", "trust"):
            if field in asked.change.model_fields_set and not getattr(asked.change, field):
                raise Reject(f"{field}: a document has always one", code="invalid_request", status=422)
        if metadata_bytes > self._metadata_bytes_max:
            raise Reject(
                f"the metadata is larger than {self._metadata_bytes_max} bytes: send less, or raise "
                "WAYLINE_RETRIEVAL_METADATA_BYTES_MAX",
                code="metadata_too_large",
                status=422,
            )

    async def chunks(self, asked: ListChunks) -> ChunkPage:
        """Return a page of a document's passages, as many as fit a message."""
        rows = await self._store.fetch(
            asked.tenant, self._sql.list_chunks, asked.tenant, asked.document_id, asked.position, asked.limit + 1
        )
        shown, size_bytes = list[DocumentChunk](), 0
        for row in rows[: asked.limit]:
            size_bytes += len(row["text"].encode())
            if shown and size_bytes > PIECE_MAX_BYTES:
                break
            shown.append(_chunk(row))
        following = rows[len(shown)]["position"] if len(rows) > len(shown) else None
        return ChunkPage(chunks=tuple(shown), next_position=following)


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)


def _chunk(row: Record) -> DocumentChunk:
    # What an earlier version copied from a document's metadata may be anything.
    headings = row["headings"] if isinstance(row["headings"], list) else []
    page = row["page"] if isinstance(row["page"], int) else None
    fields = {**dict(row), "headings": [one for one in headings if isinstance(one, str)], "page": page}
    return DocumentChunk(**fields)
