"""What happens to one document: read, cut, embed, stored in its old version's place; or failed, with the reason."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog

from wayline.chassis import Failpoint, reach
from wayline.contracts.errors import Retry
from wayline.contracts.knowledge import IndexDocument, trust_by_origin
from wayline.documents.reader_pool import ReaderPool
from wayline.retrieval.documents.chunking import Size
from wayline.retrieval.documents.cut_passages import HEADINGS, PAGE, cut_passages
from wayline.retrieval.documents.decode_document import Limits, Reader, decode, size_of
from wayline.retrieval.documents.document import (
    Chunk,
    Documents,
    RequestedDocument,
    embeddable,
    said_of,
)
from wayline.retrieval.embeddings.embed_passages import PassageEmbedder
from wayline.retrieval.embeddings.embedding import Embedder, joined
from wayline.retrieval.embeddings.embedding_payments import Accounts, NoAccounts
from wayline.retrieval.embeddings.live_sets import EmbedderOf, LiveSet
from wayline.retrieval.errors import NoBudget, ProviderRefused, Unreadable
from wayline.retrieval.storable import storable, storable_json

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vectors

log = structlog.get_logger()

READING = 1
"""Which reading and cutting of documents this is: with another one, an unchanged document is indexed again."""
HASHED_CHARS = 256 * 1024
"""Of a document's content at once."""
EMBED_BATCH = 256
"""Passages between two reports of progress."""
Fetch = Callable[[IndexDocument], Awaitable[IndexDocument]]
"""Returns a document with what its address has; raises Unreadable."""
StreamLast = Callable[[], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Indexer:
    """Takes documents from `queued` to `ready`, or to `failed` with an error that says what to do."""

    documents: Documents
    embedder: Embedder
    passages: PassageEmbedder
    limits: Limits
    size: Size
    payments: Accounts = NoAccounts()  # noqa: RUF009 - it holds nothing
    reader: Reader = field(default_factory=ReaderPool)
    fetch: Fetch | None = None
    kept: Fetch | None = None
    embedder_of: EmbedderOf | None = None
    """Returns what embeds documents for a set; None: there is this one alone."""

    async def index(
        self,
        asked: IndexDocument,
        *,
        sequence: int,
        first_delivery: bool,
        stream_last: StreamLast,
        payloads: Sequence[str] = (),
    ) -> None:
        """Index a document unless this message was overtaken; `stream_last` tells the stream's last sequence."""
        asked, problem = await self._fetched(asked)
        live = await self.documents.live_set(
            asked.tenant, model=self.embedder.model, asked_dimensions=self.embedder.asked_dimensions
        )
        embedder = self.embedder if self.embedder_of is None else self.embedder_of(live.model, live.asked_dimensions)
        requested = await asyncio.to_thread(self._requested, asked, sequence, payloads, live)
        if not await self._begin(requested, first_delivery=first_delivery, stream_last=stream_last):
            return
        try:
            if problem is not None:
                raise problem
            self._check_metadata(asked, requested)
            if not asked.kept and await self.documents.keep(requested):
                return
            decoded = await decode(asked, self.limits, self.reader)
            chunks = await asyncio.to_thread(cut_passages, requested.document_id, decoded.pages, self.size)
            vectors = await self._embedded(requested, chunks, embedder)
        except (Unreadable, ProviderRefused, NoBudget) as error:
            await self.documents.fail(requested, storable(str(error)))
            return
        reach(Failpoint.RETRIEVAL_STORE_BEFORE)
        await self.documents.replace(requested, decoded, chunks, vectors)
        reach(Failpoint.RETRIEVAL_STORE_AFTER)

    async def _fetched(self, asked: IndexDocument) -> tuple[IndexDocument, Unreadable | None]:
        """Return a document with what is kept of it or at its address, or with why that is not there."""
        fetch = self.kept if asked.kept else self.fetch
        if not asked.kept and (asked.url is None or asked.text is not None or asked.content_base64 is not None):
            return asked, None
        if fetch is None:
            return asked, Unreadable("Documents are not fetched from addresses here: send the file.")
        try:
            return await fetch(asked), None
        except Unreadable as error:
            return asked, error

    async def _begin(self, requested: RequestedDocument, *, first_delivery: bool, stream_last: StreamLast) -> bool:
        if await self.documents.begin(requested):
            return True
        # Overtaken, finished before, or the stream was made anew and counts from 1 again: then what the row remembers
        # is the old stream's, and this message is the newer one.
        before, deleted = await self.documents.last_word(requested.tenant, requested.document_id)
        repeated = before == requested.sequence and not deleted
        began_again = before > await stream_last() or (first_delivery and repeated)
        return began_again and await self.documents.begin(requested, anew=True)

    def _requested(
        self, asked: IndexDocument, sequence: int, payloads: Sequence[str], live: LiveSet
    ) -> RequestedDocument:
        content = asked.content_base64
        metadata = storable_json(asked.metadata)
        too_large = len(json.dumps(metadata)) > self.limits.metadata_bytes_max
        name = storable(asked.name) or asked.document_id
        return RequestedDocument(
            tenant=asked.tenant,
            document_id=asked.document_id,
            name=name,
            trust=asked.trust
            or ("untrusted" if asked.url else trust_by_origin(name, metadata, media_type=asked.media_type)),
            media_type=storable(asked.media_type),
            size_bytes=len(content) * 3 // 4 if content is not None else size_of(asked.text or ""),
            metadata={} if too_large else metadata,
            embedding_model=live.model,
            set_id=live.set_id,
            sequence=sequence,
            payloads=tuple(payloads),
            indexed_as=self._fingerprint(asked, name, metadata),
            collection=None if asked.collection is None else storable(asked.collection),
            audience=asked.audience,
            valid_until=asked.valid_until,
            said=said_of(asked),
            kept=asked.kept,
        )

    def _fingerprint(self, asked: IndexDocument, name: str, metadata: dict[str, Any]) -> str:
        """Return what is the same where indexing a document would give the same passages and vectors."""
        content = asked.content_base64 if asked.content_base64 is not None else asked.text or ""
        own = {key: metadata[key] for key in (PAGE, HEADINGS) if key in metadata}
        how = [
            READING,
            asked.content_base64 is None,
            name,
            asked.media_type,
            own,
            self.embedder.model,
            self.embedder.kept,
        ]
        how += [self.size.chars_max, self.size.tokens_max]
        hashed = hashlib.sha256(json.dumps(how, sort_keys=True).encode())
        # In pieces: encoded as a whole a large document would be held once more.
        for at in range(0, len(content), HASHED_CHARS):
            hashed.update(content[at : at + HASHED_CHARS].encode("utf-8", "surrogatepass"))
        return hashed.hexdigest()

    def _check_metadata(self, asked: IndexDocument, requested: RequestedDocument) -> None:
        """Raise Unreadable where there is too much of it."""
        if asked.metadata and not requested.metadata:
            raise Unreadable(
                f"The metadata is larger than {self.limits.metadata_bytes_max} bytes, and every passage carries it: "
                f"send less, or raise WAYLINE_RETRIEVAL_METADATA_BYTES_MAX."
            )

    async def _embedded(
        self, requested: RequestedDocument, chunks: list[Chunk], embedder: Embedder
    ) -> Vectors | list[Vectors] | None:
        """Return the passages' vectors; None: they are made later, and words find the document until then."""
        await self.documents.progress(requested, done=0, total=len(chunks))
        if embedder.background and self.embedder_of is not None:
            return None
        vectors: list[Vectors] = []
        payer = self.payments.account(requested.tenant, holds=True, model=embedder.model)
        for at in range(0, len(chunks), EMBED_BATCH):
            batch = [embeddable(requested.name, piece) for piece in chunks[at : at + EMBED_BATCH]]
            try:
                vectors.append(await self.passages.embed(embedder, requested.tenant, batch, payer=payer))
            except Retry as error:
                log.warning("a document gets its vectors later", document_id=requested.document_id, why=str(error))
                return None
            await self.documents.progress(requested, done=at + len(batch), total=len(chunks))
        return joined(vectors) if vectors else vectors
