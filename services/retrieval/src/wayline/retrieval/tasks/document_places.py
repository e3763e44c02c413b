"""Passages of a document at their places."""

from __future__ import annotations

from importlib.resources import files

from wayline.contracts.task_graphs import ContextPassage, DocumentContext, GetDocumentContext
from wayline.retrieval.storable import storable
from wayline.store import Store
from wayline.store.queries import Queries


class DocumentPlaces:
    """Reads what stands around a passage."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = Queries.load(files(__package__ or "").joinpath("queries.sql"))

    async def around(self, asked: GetDocumentContext) -> DocumentContext | None:
        """Return the passages around one; None: there is no such document, or it has no such passage."""
        tenant, document_id = asked.tenant, storable(asked.document_id)
        async with self._store.tenant(tenant) as conn:
            names = list(asked.audience or ())
            document = await conn.fetchrow(self._sql.document_of_context, tenant, document_id, names)
            if document is None:
                return None
            at, before = 0, 0
            if asked.chunk_id is not None:
                found = await conn.fetchval(self._sql.position_of_chunk, tenant, document_id, storable(asked.chunk_id))
                if found is None:
                    return None
                at, before = found, asked.before
            rows = await conn.fetch(self._sql.passages_between, tenant, document_id, at - before, at + asked.after)
        return DocumentContext(
            document_id=document_id,
            document=document["name"],
            passages=tuple(ContextPassage(**dict(row)) for row in rows),
            passages_total=document["passages_total"],
            untrusted=document["trust"] == "untrusted",
        )
