"""The rows of documents: how far each is, and the one transaction that puts a new version in the old one's place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from wayline.contracts.knowledge import (
    PIECE_MAX_BYTES,
    AcceptDocument,
    Document,
    DocumentStatus,
    DocumentText,
    Trust,
    trust_by_origin,
)
from wayline.retrieval.documents.decode_document import Decoded, Original
from wayline.retrieval.documents.document import Chunk, RequestedDocument, embeddable, said_of
from wayline.retrieval.documents.near_copy_table import note_near_copy
from wayline.retrieval.embeddings.embed_passages import text_sha256
from wayline.retrieval.embeddings.live_set_table import LiveSetTable
from wayline.retrieval.embeddings.live_sets import LiveSet
from wayline.store import Connection, PostgresUnavailable, Record, Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

READ_PASSAGES_MAX = 200
"""Passages in one piece of a document's text."""
STORE_BATCH = 200
"""Chunks in one round trip to Postgres: no statement takes long, however many different words a document has."""
ADDED, REMOVED = 1, -1
"""What chunks do to the tenant's counts."""
TIME_OUTS_MAX = 3
"""Times that storing a document may take too long."""
TIMED_OUT_MAX = 1_000
"""Documents whose time-outs are remembered."""
TOO_SLOW = (
    "Storing this document ({passages:,} passages) took longer than a statement may, {times} times: cut it into "
    "smaller documents, or send it again when Postgres has less to do."
)


def _trust(asked: AcceptDocument, name: str, metadata: dict[str, Any]) -> Trust:
    return trust_by_origin(name, metadata, media_type=asked.media_type)


class DocumentTable:
    """What is known of each document."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = store.sql
        self._sets = LiveSetTable(store)
        self._timed_out = _TimeOuts()

    async def accept(self, asked: AcceptDocument, *, name: str, metadata: dict[str, Any]) -> Document | None:
        """Note a document as queued unless it has got further, and say how far it is."""
        tenant, document_id = asked.tenant, asked.document_id
        async with self._store.tenant(tenant) as conn:
            await conn.execute(
                self._sql.accept_document,
                *(tenant, document_id, name, asked.media_type, asked.size_bytes, metadata, asked.sequence),
                *(asked.trust or _trust(asked, name, metadata), list(said_of(asked))),
                *(asked.collection, _listed(asked.audience), asked.valid_until, asked.kept),
            )
            row = await conn.fetchrow(self._sql.get_document, tenant, document_id, None)
        return _document(row) if row else None

    async def get(self, tenant: str, document_id: str, *, seen_by: Sequence[str] | None = None) -> Document | None:
        """Return a document and how far it is; None: there is none, or none that these names may find."""
        row = await self._store.fetchrow(tenant, self._sql.get_document, tenant, document_id, _listed(seen_by))
        return _document(row) if row else None

    async def may_be_found(self, tenant: str, document_id: str, names: Sequence[str]) -> bool:
        """Return whether a document is there for one of these names."""
        found = await self._store.fetchval(tenant, self._sql.may_be_found, tenant, document_id, list(names))
        return bool(found)

    async def text(self, tenant: str, document_id: str, position: int) -> DocumentText | None:
        """Return a document's text from a passage on, as much as fits a message; None: there is no such document."""
        rows = await self._store.fetch(
            tenant, self._sql.read_passages, tenant, document_id, position, READ_PASSAGES_MAX + 1
        )
        if not rows:
            return None if await self.get(tenant, document_id) is None else DocumentText(text="")
        pieces, size_bytes, following = list[str](), 0, None
        for row in rows:
            size_bytes += len(row["text"].encode())
            if pieces and (size_bytes > PIECE_MAX_BYTES or len(pieces) == READ_PASSAGES_MAX):
                following = row["position"]
                break
            pieces.append(row["text"])
        return DocumentText(text="".join(pieces), next_position=following)

    async def page(
        self,
        tenant: str,
        *,
        limit: int,
        after: tuple[datetime, str] | None,
        name: str | None = None,
        status: DocumentStatus | None = None,
        collection: str | None = None,
        language: str | None = None,
        seen_by: Sequence[str] | None = None,
    ) -> list[Document]:
        """Return the newest documents, at most `limit` of them, after the given one; `*` in a name is anything."""
        created_at, document_id = after or (None, None)
        like = None if name is None else _like(name)
        rows = await self._store.fetch(
            tenant,
            self._sql.list_documents,
            *(tenant, created_at, document_id, limit, like, status, _listed(seen_by), collection, language),
        )
        return [_document(row) for row in rows]

    async def live_set(self, tenant: str, *, model: str, asked_dimensions: int | None) -> LiveSet:
        """Return the set of vectors that the tenant's searches read, a new one of this model where there is none."""
        return await self._sets.made(tenant, model=model, asked_dimensions=asked_dimensions)

    async def begin(self, requested: RequestedDocument, *, anew: bool = False) -> bool:
        """Take a document for indexing; False when this message has nothing more to say about it."""
        return bool(
            await self._store.fetchval(
                requested.tenant,
                self._sql.begin_indexing,
                *(requested.tenant, requested.document_id, requested.name, requested.media_type, requested.size_bytes),
                *(requested.metadata, requested.embedding_model, requested.sequence, anew, list(requested.payloads)),
                *(requested.trust, requested.collection, requested.valid_until),
                *(_listed(requested.audience), list(requested.said), requested.kept),
            )
        )

    async def last_word(self, tenant: str, document_id: str) -> tuple[int, bool]:
        """Return the sequence of the last message that acted on a document, and whether that deleted it."""
        row = await self._store.fetchrow(tenant, self._sql.sequences_of, tenant, document_id)
        if row is None:
            return 0, False
        deleted = row["deleted_sequence"]
        return (row["sequence"], False) if deleted is None else (deleted, True)

    async def keep(self, requested: RequestedDocument) -> bool:
        """End the indexing of a document that is stored as it would be again, with new metadata; False: it is not."""
        tenant, document_id = requested.tenant, requested.document_id
        async with self._store.tenant(tenant) as conn:
            kept = await conn.fetchval(
                self._sql.keep_document, tenant, document_id, requested.sequence, requested.indexed_as
            )
            if kept:
                await conn.execute(self._sql.forget_copied_metadata, tenant, document_id)
                await self._end_version(conn, requested)
        return bool(kept)

    async def progress(self, requested: RequestedDocument, *, done: int, total: int) -> None:
        """Note how many of its passages are embedded."""
        await self._store.execute(
            requested.tenant,
            self._sql.progress,
            requested.tenant,
            requested.document_id,
            requested.sequence,
            done,
            total,
        )

    async def fail(self, requested: RequestedDocument, error: str) -> None:
        """Note a document as failed, if its message still has it in hand."""
        await self.give_up(requested.tenant, requested.document_id, requested.sequence, error)

    async def give_up(self, tenant: str, document_id: str, sequence: int, error: str) -> None:
        """Note a document as failed, if the message with this sequence still has it in hand."""
        await self._store.execute(tenant, self._sql.fail_document, tenant, document_id, sequence, error)

    async def replace(
        self,
        requested: RequestedDocument,
        decoded: Decoded,
        chunks: Sequence[Chunk],
        vectors: NDArray[Any] | Sequence[NDArray[Any]] | None,
    ) -> bool:
        """Put the new version in the old one's place, all at once; False when the message was overtaken meanwhile.

        A document whose statements time out again and again is failed: it would do so for ever.
        """
        try:
            stored = await self._replace(requested, decoded, chunks, vectors)
        except PostgresUnavailable as error:
            if not error.statement_too_slow or self._timed_out.again(requested) < TIME_OUTS_MAX:
                raise
            await self.fail(requested, TOO_SLOW.format(times=TIME_OUTS_MAX, passages=len(chunks)))
            stored = False
        self._timed_out.forget(requested)
        return stored

    async def _replace(
        self,
        requested: RequestedDocument,
        decoded: Decoded,
        chunks: Sequence[Chunk],
        vectors: NDArray[Any] | Sequence[NDArray[Any]] | None,
    ) -> bool:
        tenant, document_id = requested.tenant, requested.document_id
        async with self._store.tenant(tenant) as conn:
            if not await conn.fetchval(self._sql.lock_indexing, tenant, document_id, requested.sequence):
                return False
            gone = await self._delete_chunks(conn, tenant, document_id)
            dimensions = len(vectors[0]) if vectors is not None and len(vectors) else 0
            which = (tenant, document_id, requested.name, requested.embedding_model, dimensions)
            for at in range(0, len(chunks), STORE_BATCH):
                columns = _columns(requested.name, chunks[at : at + STORE_BATCH])
                await conn.execute(self._sql.add_chunks, *which, at, decoded.language, *columns)
                await conn.execute(self._sql.note_counts, tenant, document_id, at, at + STORE_BATCH, ADDED)
            await self._forget_embeddings(conn, tenant, document_id, gone)
            await self._add_vectors(conn, requested, chunks, vectors)
            await self._keep_original(conn, requested, decoded.original)
            ended = (len(chunks), decoded.problem, decoded.language, requested.indexed_as)
            await conn.execute(self._sql.end_document, tenant, document_id, *ended)
            await self._end_version(conn, requested)
            await note_near_copy(conn, self._sql, tenant=tenant, document_id=document_id, signature=decoded.signature)
        return True

    async def _keep_original(self, conn: Connection, requested: RequestedDocument, original: Original) -> None:
        which = (requested.tenant, requested.document_id)
        await conn.execute(self._sql.put_original, *which, *_kept(original))
        if original.text is not None:
            digest = hashlib.sha256(original.text).hexdigest()
            await conn.execute(self._sql.put_text_of_file, *which, original.text, digest, original.text_tokens)

    async def _end_version(self, conn: Connection, requested: RequestedDocument) -> None:
        """Let those find the document whom the version names that is in place now."""
        says = (requested.trust, _listed(requested.audience), requested.valid_until, requested.kept)
        await conn.execute(self._sql.end_version, requested.tenant, requested.document_id, requested.sequence, *says)

    async def delete(
        self, tenant: str, document_id: str, *, last: int, seen_by: Sequence[str] | None = None
    ) -> int | None:
        """Delete a document with its chunks, and return how many they were; None when there is none for these names.

        A tombstone is left: index messages up to `last` may name it, and its objects on the bus are to be dropped.
        """
        async with self._store.tenant(tenant) as conn:
            if await conn.fetchval(self._sql.lock_document, tenant, document_id, _listed(seen_by)) is None:
                return None
            gone = await self._delete_chunks(conn, tenant, document_id)
            await self._forget_embeddings(conn, tenant, document_id, gone)
            await conn.execute(self._sql.delete_task_edges, tenant, document_id)
            await conn.execute(self._sql.drop_bands, tenant, document_id)
            await conn.execute(self._sql.delete_tasks_of, tenant, document_id)
            await conn.execute(self._sql.delete_original, tenant, document_id)
            await conn.execute(self._sql.bury_document, tenant, document_id, last)
        return len(gone)

    async def _delete_chunks(self, conn: Connection, tenant: str, document_id: str) -> list[Record]:
        """Take a document's chunks away, and what they hold from the tenant's counts; returns a row for each."""
        end = await conn.fetchval(self._sql.passages_end, tenant, document_id)
        if not end:
            return []
        for at in range(0, end, STORE_BATCH):
            await conn.execute(self._sql.note_counts, tenant, document_id, at, at + STORE_BATCH, REMOVED)
        gone = await conn.fetch(self._sql.delete_chunks, tenant, document_id)
        await conn.execute(self._sql.delete_chunk_vectors, tenant, document_id)
        return gone

    async def _add_vectors(
        self,
        conn: Connection,
        requested: RequestedDocument,
        chunks: Sequence[Chunk],
        vectors: NDArray[Any] | Sequence[NDArray[Any]] | None,
    ) -> None:
        """Store the vectors that are there, and note in which sets others are to be made."""
        if not chunks:
            return
        tenant, document_id, set_id = requested.tenant, requested.document_id, requested.set_id
        if vectors is None:
            set_id = None
        elif set_id is not None:
            rows = [
                (tenant, set_id, chunk.chunk_id, document_id, len(vector), vector)
                for chunk, vector in zip(chunks, vectors, strict=True)
            ]
            for at in range(0, len(rows), STORE_BATCH):
                await conn.executemany(self._sql.add_chunk_vector, rows[at : at + STORE_BATCH])
        await conn.execute(self._sql.await_vectors, tenant, document_id, requested.sequence, set_id)

    async def _forget_embeddings(self, conn: Connection, tenant: str, document_id: str, gone: Sequence[Record]) -> None:
        texts = [row["text_sha256"] for row in gone if row["text_sha256"] is not None]
        if texts:
            await conn.execute(self._sql.forget_kept_embeddings, tenant, document_id, texts)


class _TimeOuts:
    """How often storing a document took too long, of those that this process has in hand."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str, int], int] = {}

    def again(self, requested: RequestedDocument) -> int:
        """Count one more time, and return how many there were."""
        key = (requested.tenant, requested.document_id, requested.sequence)
        self._times[key] = self._times.pop(key, 0) + 1
        if len(self._times) > TIMED_OUT_MAX:
            del self._times[next(iter(self._times))]
        return self._times[key]

    def forget(self, requested: RequestedDocument) -> None:
        self._times.pop((requested.tenant, requested.document_id, requested.sequence), None)


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)


def _like(name: str) -> str:
    """Turn a name with `*` into a pattern of Postgres."""
    escaped = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%")


def _columns(name: str, chunks: Sequence[Chunk]) -> Iterator[list[Any]]:
    """Yield what is stored of passages, by column."""
    yield [chunk.chunk_id for chunk in chunks]
    yield [" ".join(chunk.headings) for chunk in chunks]
    yield [chunk.text for chunk in chunks]
    yield [chunk.metadata for chunk in chunks]
    yield [text_sha256(embeddable(name, chunk)) for chunk in chunks]
    yield [chunk.start for chunk in chunks]
    yield [chunk.end for chunk in chunks]
    yield [chunk.before for chunk in chunks]


def _kept(original: Original) -> tuple[Any, ...]:
    return (
        original.content,
        original.sha256,
        original.media_type,
        original.width,
        original.height,
        original.pages,
        original.text_bytes,
        original.text_tokens,
    )


def _document(row: Record) -> Document:
    return Document(**dict(row))
