"""Find passages: the words of a query as the index knows them, and the one statement that ranks and fuses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from wayline.contracts.knowledge import Filter
from wayline.retrieval.ranking import K1, RRF_K, B, Term, quoted
from wayline.retrieval.search_plan import Corpus, VectorLeg, WordsLeg
from wayline.store import Connection, Record, Store

TENANT_SIGN = "~"
"""What the index writes in front of the tenant among a passage's words."""


class PassageTable:
    """The search side of the chunks' table."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = store.sql

    @asynccontextmanager
    async def searching(self, tenant: str) -> AsyncIterator[PassageSearch]:
        """Open one transaction of a tenant with the settings that searching needs."""
        async with self._store.tenant(tenant) as conn:
            await conn.execute(self._sql.use_search_settings)
            old_words = await conn.fetchval(self._sql.has_old_words, tenant)
            yield PassageSearch(conn, self._sql, tenant, old_words=old_words)


class PassageSearch:
    """The statements of one search."""

    def __init__(self, conn: Connection, sql: Any, tenant: str, *, old_words: bool) -> None:
        self._conn = conn
        self._sql = sql
        self._tenant = tenant
        self._old_words = old_words
        """Whether some passages may not have their tenant among their words yet."""

    async def corpora(self) -> list[Corpus]:
        """Return how much the tenant knows, by embedding model."""
        return [Corpus(**dict(row)) for row in await self._conn.fetch(self._sql.corpora, self._tenant)]

    async def terms(self, query: str) -> list[Term]:
        """Return the words of the query as the index knows them."""
        rows = await self._conn.fetch(self._sql.query_terms, self._tenant, query)
        return [Term(row["term"], chunks=row["chunks"], times=row["times"]) for row in rows]

    async def best(
        self,
        words: WordsLeg | None,
        vector: VectorLeg | None,
        *,
        where: Filter,
        candidates: int,
        top_k: int,
        min_score: float | None,
    ) -> list[Record]:
        """Return the best passages by one leg's own score, or by reciprocal rank fusion of both."""
        dimensions = len(vector.vector) if vector else 1
        return await self._conn.fetch(
            self._sql.search.replace("{dimensions}", str(dimensions)),
            *(
                self._tenant,
                None if where.document_ids is None else list(where.document_ids),
                where.metadata or None,
                candidates,
            ),
            *self._words_arguments(words),
            *(vector is not None, vector.vector if vector else None, vector.embedding_model if vector else ""),
            *(words.weight if words else 0.0, vector.weight if vector else 0.0),
            *(float(RRF_K) if words and vector else None, min_score, top_k, vector.similarity_min if vector else -1.0),
        )

    def _words_arguments(self, words: WordsLeg | None) -> tuple[Any, ...]:
        if words is None:
            return (False, "", [], [], K1, B, 1.0)
        # The index then knows by itself whose passages they are, and reads no others.
        match = words.match if self._old_words else f"{quoted(TENANT_SIGN + self._tenant)} & ({words.match})"
        return (True, match, list(words.terms), list(words.weights), K1, B, max(1.0, words.average_words))
