"""Find passages: the words of a query as the index knows them, and the one statement that ranks and fuses."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from wayline.retrieval.embeddings.live_set_table import LiveSetTable
from wayline.retrieval.embeddings.live_sets import LiveSet
from wayline.retrieval.search.postings import PostingList, best_places
from wayline.retrieval.search.ranking import K1, B, Term, Words, quoted
from wayline.retrieval.search.search_plan import Allowed, Chosen, Corpus, VectorLeg, WordsLeg
from wayline.retrieval.search.spelling import deletions, one_letter_apart
from wayline.store import Connection, Record, Store

POSTED_TERMS_MAX = 64
"""Words of a query whose postings are read."""
NAMED_MAX = 20_000
"""Documents that a filter may allow for them to be named; of more, each passage is looked up."""
LOOKED_AT_MAX = 5_000
"""Passages of the allowed documents up to which each is looked at."""
UNCOUNTED_WORDS_MAX = 200_000
"""Words that a search reads of what documents changed and the counts do not have yet: a fraction of a second."""
FRESH_MAX = 5_000
"""Documents in no segment whose passages are ranked one by one."""
QUERIES_REMEMBERED_MAX = 200
"""Of a tenant, the last distinct ones."""
QUERIES_MAX_DAYS = 7
TENANTS_REMEMBERED_MAX = 1_000
"""Whose queries wait to be stored in this process."""
VECTOR_INDEX_MAX = 2_000
"""Dimensions up to which HNSW takes whole numbers of four bytes; above, of two."""
PLACE_KEYS = frozenset({"page", "headings"})
"""What a passage's metadata has of its own."""
TENANT_SIGN = "~"
"""What the index writes in front of the tenant among a passage's words."""


class PassageTable:
    """The search side of the chunks' table."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = store.sql
        self._sets = LiveSetTable(store)
        self._asked: dict[str, OrderedDict[str, None]] = {}

    async def live_set(self, tenant: str) -> LiveSet | None:
        """Return the set of vectors that the tenant's searches read; None: there is none yet."""
        return await self._sets.live(tenant)

    def note_query(self, tenant: str, query: str) -> None:
        """Remember a query among the tenant's last ones, by which a new set of vectors is compared."""
        asked = self._asked.setdefault(tenant, OrderedDict())
        asked[query] = None
        asked.move_to_end(query)
        if len(asked) > QUERIES_REMEMBERED_MAX:
            asked.popitem(last=False)
        if len(self._asked) > TENANTS_REMEMBERED_MAX:
            del self._asked[next(iter(self._asked))]

    async def store_queries(self) -> None:
        """Store the queries that were asked since the last time: not one by one, for a search waits for no commit."""
        asked, self._asked = self._asked, {}
        for tenant, queries in asked.items():
            async with self._store.tenant(tenant) as conn:
                await conn.executemany(self._sql.note_query, [(tenant, query) for query in queries])
                await conn.execute(self._sql.forget_queries, tenant, QUERIES_REMEMBERED_MAX, QUERIES_MAX_DAYS)

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
        rows = await self._conn.fetch(self._sql.query_terms, self._tenant, query, UNCOUNTED_WORDS_MAX)
        return [Term(row["term"], chunks=row["chunks"], times=row["times"], place=row["place"]) for row in rows]

    async def choose(self, words: Words, *, count: int) -> Chosen | None:
        """Return the passages in which the words weigh most by the tenant's postings; None: there are no segments."""
        segments = [row["segment"] for row in await self._conn.fetch(self._sql.segments, self._tenant)]
        if not segments:
            return None
        weights = dict(zip(words.words, words.weights, strict=True))
        heaviest = sorted(weights, key=lambda word: (-weights[word], word))[:POSTED_TERMS_MAX]
        rows = await self._conn.fetch(self._sql.posting_lists, self._tenant, segments, heaviest)
        lists = [PostingList(row["segment"], row["term"], row["postings"]) for row in rows]
        places = await asyncio.to_thread(best_places, lists, weights=weights, count=count)
        chosen = await self._conn.fetch(self._sql.chunks_at, self._tenant, places.segments, places.slots)
        fresh = await self._conn.fetch(self._sql.documents_in_no_segment, self._tenant, FRESH_MAX)
        return Chosen(
            [row["chunk_id"] for row in chosen],
            [row["document_id"] for row in fresh],
            " | ".join(quoted(word) for word in heaviest),
        )

    async def demands(self, phrases: Sequence[str], excluded: Sequence[str]) -> tuple[str | None, str | None]:
        """Return what passages must match and must not, for phrases and words that a query demands and excludes."""
        asked = (self._tenant, list(phrases), list(excluded), UNCOUNTED_WORDS_MAX)
        row = await self._conn.fetchrow(self._sql.demands, *asked)
        return (None, None) if row is None else (row["must"], row["must_not"])

    async def near_terms(self, word: str) -> list[Term]:
        """Return the words of the tenant's passages that are one letter from a word, commonest first."""
        asked = " | ".join(quoted(f"{self._tenant}{TENANT_SIGN}{part}") for part in deletions(word))
        rows = await self._conn.fetch(self._sql.near_terms, self._tenant, asked)
        return [Term(row["term"], chunks=row["chunks"]) for row in rows if one_letter_apart(word, row["term"])]

    async def terms_that_begin(self, beginning: str) -> list[Term]:
        """Return the commonest words of the tenant's passages with a beginning."""
        rows = await self._conn.fetch(self._sql.terms_that_begin, self._tenant, beginning.lower())
        return [Term(row["term"], chunks=row["chunks"]) for row in rows]

    async def narrow(self, allowed: Allowed) -> Allowed:
        """Name the documents that a filter and an audience allow, where these are not too many.

        Of a document that is named nothing is looked up for each of its passages.
        """
        where = _of_documents(allowed)
        restricted = await self._conn.fetchval(self._sql.has_restricted_documents, self._tenant)
        if not (where or restricted) and allowed.collections is None and allowed.document_ids is None:
            return allowed
        rows = await self._conn.fetch(
            self._sql.filtered_documents,
            *(self._tenant, where or None, _listed(allowed.collections), NAMED_MAX + 1),
            *(_listed(allowed.document_ids), list(allowed.names)),
        )
        if len(rows) > NAMED_MAX:
            return allowed
        few = sum(row["chunks"] for row in rows) <= LOOKED_AT_MAX
        named = tuple(row["document_id"] for row in rows)
        return replace(allowed, document_ids=named, where={}, collections=None, few=few, looked_up=True)

    async def best(
        self,
        words: WordsLeg | None,
        vector: VectorLeg | None,
        *,
        allowed: Allowed,
        candidates: int,
        top_k: int,
        min_score: float | None,
    ) -> list[Record]:
        """Return the best passages by one leg's own score, or by both legs' scores."""
        dimensions = len(vector.vector) if vector else 1
        sql = with_dimensions(self._sql.search.replace("{allowed}", self._sql.allowed), dimensions, asked="$13")
        restricted = not allowed.looked_up and await self._conn.fetchval(
            self._sql.has_restricted_documents, self._tenant
        )
        return await self._conn.fetch(
            # An operation on the distance is no order that the index knows.
            sql.replace("{exact}", "+ 0" if vector is not None and vector.exact else ""),
            *(self._tenant, _listed(allowed.document_ids), allowed.metadata or None, candidates),
            *self._words_arguments(words),
            *(vector is not None, vector.vector if vector else None, vector.set_id if vector else 0),
            *(words.weight if words else 0.0, vector.weight if vector else 0.0),
            *(words.most if words else 1.0, min_score, top_k, vector.similarity_min if vector else -1.0),
            *self._chosen_arguments(words.chosen if words else None),
            *(allowed.match, allowed.where or None, _listed(allowed.collections), list(allowed.names), restricted),
        )

    def _words_arguments(self, words: WordsLeg | None) -> tuple[Any, ...]:
        if words is None:
            return (False, "", [], [], K1, B, 1.0)
        return (
            True,
            self._of_tenant(words.match),
            list(words.terms),
            list(words.weights),
            K1,
            B,
            max(1.0, words.average_words),
        )

    def _chosen_arguments(self, chosen: Chosen | None) -> tuple[Any, ...]:
        if chosen is None:
            return (None, None, None)
        fresh = list(chosen.fresh) or None
        return (list(chosen.chunk_ids), fresh, self._of_tenant(chosen.fresh_match))

    def _of_tenant(self, match: str | None) -> str | None:
        """Ask for the tenant too: the index then knows by itself whose passages they are, and reads no others."""
        if match is None or self._old_words:
            return match
        return f"{quoted(TENANT_SIGN + self._tenant)} & ({match})"


def _of_documents(allowed: Allowed) -> dict[str, dict[str, Any]]:
    """Return conditions on documents that hold wherever a filter's do: a passage has its document's pairs."""
    pairs = {key: value for key, value in allowed.metadata.items() if key not in PLACE_KEYS}
    # Of lists and objects the index of pairs does not see that 1 is 1.0.
    equal = {key: {"equals": value} for key, value in pairs.items() if not isinstance(value, (list, dict))}
    return equal | allowed.where


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)


def with_dimensions(sql: str, dimensions: int, *, asked: str) -> str:
    """Return a statement for vectors of so many dimensions, in the form that the index over them has."""
    form = f"halfvec({dimensions})" if dimensions > VECTOR_INDEX_MAX else f"vector({dimensions})"
    # The parameter is a vector whatever the index holds.
    value = f"{asked}::vector({dimensions})" + (f"::{form}" if dimensions > VECTOR_INDEX_MAX else "")
    return (
        sql.replace("{dimensions}", str(dimensions)).replace("{stored}", f"embedding::{form}").replace("{asked}", value)
    )
