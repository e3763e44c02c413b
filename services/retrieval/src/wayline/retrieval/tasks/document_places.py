"""Passages of a document at their places."""

from __future__ import annotations

from importlib.resources import files

from wayline.contracts.errors import Reject
from wayline.contracts.task_graphs import ContextPassage, DocumentContext, GetDocumentContext
from wayline.retrieval.storable import storable
from wayline.store import Connection, Store
from wayline.store.queries import Queries

NAMED_MAX = 10
"""Ids that a refusal lists where several documents have a name."""


class DocumentPlaces:
    """Reads what stands around a passage."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = Queries.load(files(__package__ or "").joinpath("queries.sql"))

    async def around(self, asked: GetDocumentContext) -> DocumentContext | None:
        """Return the passages around one; None: there is no such document, or it has no such passage.

        What is no id is the name of a document. Raises Reject where several have it.
        """
        tenant, document_id = asked.tenant, storable(asked.document_id)
        async with self._store.tenant(tenant) as conn:
            names = list(asked.audience or ())
            document = await conn.fetchrow(self._sql.document_of_context, tenant, document_id, names)
            if document is None:
                document_id = await self._named(conn, asked, names)
                if document_id is None:
                    return None
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

    async def _named(self, conn: Connection, asked: GetDocumentContext, names: list[str]) -> str | None:
        """Return the one document that has a name, of those that its reader may find."""
        name = storable(asked.document_id)
        rows = await conn.fetch(self._sql.documents_of_name, asked.tenant, name, names, NAMED_MAX + 1)
        found = [row["document_id"] for row in rows]
        if len(found) < 2:
            return next(iter(found), None)
        more = " and others" if len(found) > NAMED_MAX else ""
        raise Reject(
            f"several documents have the name {name!r}; say the id of one: {', '.join(found[:NAMED_MAX])}{more}",
            code="ambiguous_document",
            status=409,
        )
