"""Answer one query: check that its vectors may be compared, choose its words, rank, fuse, say why."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wayline.contracts.knowledge import Degraded, EmbeddedTexts, EmbedTexts, SearchKnowledge, SearchResult
from wayline.retrieval.embeddings.embed_queries import QueryEmbedder
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.embeddings.embedding import Embedder
from wayline.retrieval.embeddings.embedding_payments import Account
from wayline.retrieval.embeddings.live_sets import LiveSet
from wayline.retrieval.search.find_terms import FoundTerms, find_terms
from wayline.retrieval.search.hits import hits_of
from wayline.retrieval.search.query_syntax import ParsedQuery, parse_query
from wayline.retrieval.search.ranking import Term, Words, choose_share, choose_words, most_of, quoted
from wayline.retrieval.search.search_plan import Allowed, Chosen, Corpus, Passages, Search, VectorLeg, WordsLeg
from wayline.retrieval.storable import storable, storable_json
from wayline.store import Record
from wayline.telemetry import Telemetry, metrics, names

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vector

DATA_SOURCE = "knowledge"
CHOSEN_FACTOR = 3
"""Passages that postings choose for each that is ranked: their weights are rounded."""
COPIES_MAX = 20
"""Passages that are looked at beyond those that are asked for, because some may be copies of others."""
EXACT_VECTORS_MAX = 10_000
"""Passages of a tenant up to which every vector is looked at: that is as fast as the index of all tenants' vectors,
misses nothing, and reads no rows of others."""
EMBEDDED_MAX_CHARS = 10_000
"""Of a query's beginning: an embedder reads no more of it, and a paid one would be paid for it."""
WAITING_COUNTED_MAX = 100
NOTHING_STORED = "Nothing has been ingested yet."
NO_DOCUMENTS = "The filter names no document: leave `document_ids` out to search in all of them."
NOTHING_FITS = "No document fits the filter."
NO_PHRASE = "No passage holds the phrase as it is written; these hold its words."
NO_WORDS = (
    "No word of the query can be searched for: they are too common to tell passages apart, or in none of those that "
    "may be found."
)
SQL_SPAN = {names.DB_SYSTEM: "postgresql", names.DB_OPERATION: "SELECT", names.DB_COLLECTION: "retrieval.chunks"}


@dataclass(frozen=True, slots=True)
class Searcher:
    """Finds passages of one tenant by words, by vector, or by both."""

    passages: Passages
    queries: QueryEmbedder
    telemetry: Telemetry
    keyword_candidates: int
    leg_candidates: int

    @property
    def texts(self) -> TextEmbedder:
        """Return what embeds texts at once."""
        return self.queries.texts

    async def search(self, asked: SearchKnowledge) -> SearchResult:
        """Find the best passages. Raises Retry while Postgres is away; a leg that cannot answer is left out."""
        attributes = {
            names.GEN_AI_OPERATION: "retrieval",
            names.GEN_AI_DATA_SOURCE: DATA_SOURCE,
            names.GEN_AI_RETRIEVAL_TOP_K: asked.top_k,
        }
        with self.telemetry.calling(f"retrieval {DATA_SOURCE}", attributes):
            live = await self.passages.live_set(asked.tenant) if _by_vector(asked) else None
            account = self._account(asked, live) if live else None
            found = await self._search(asked, live, account)
            for missing in found.degraded:
                metrics.searches_degraded.labels(missing.leg, missing.reason).inc()
            if account is None or not asked.caller_pays:
                return found
            return found.model_copy(update={"cost_usd": await account.hand_over()})

    def _account(self, asked: SearchKnowledge, live: LiveSet) -> Account | None:
        payments = self.texts.payments
        return payments.account(asked.tenant, holds=False, model=live.model, caller_pays=asked.caller_pays)

    async def embed(self, asked: EmbedTexts) -> EmbeddedTexts:
        """Return the vectors of texts, or none where they would only compare words. Raises Retry, and NoBudget."""
        if not self.texts.meaning:
            return EmbeddedTexts()
        embedded = await self.texts.embed(asked.tenant, [storable(text) for text in asked.texts], holds=asked.holds)
        encoded = (base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in embedded.vectors)
        return EmbeddedTexts(model=embedded.model, vectors=tuple(encoded))

    async def _search(self, asked: SearchKnowledge, live: LiveSet | None, account: Account | None) -> SearchResult:
        if asked.filter.document_ids == () or asked.filter.collections == ():
            return SearchResult(hits=(), mode=asked.mode, note=NO_DOCUMENTS)
        query = storable(asked.query)
        parsed = parse_query(query) if asked.syntax == "web" else ParsedQuery(query)
        meant, degraded = await self._embedded(asked.tenant, parsed.text, live, account)
        async with self.passages.searching(asked.tenant) as search:
            corpora = await search.corpora()
            if not corpora:
                return SearchResult(hits=(), mode=asked.mode, note=NOTHING_STORED, degraded=degraded)
            allowed = await search.narrow(_allowed(asked))
            if allowed.document_ids == ():
                return SearchResult(hits=(), mode=asked.mode, note=NOTHING_FITS, degraded=degraded)
            # Words answer where vectors cannot, whatever was asked for.
            by_words = meant is None or (asked.mode == "hybrid" and asked.vector_weight != 1)
            chunks = sum(corpus.chunks for corpus in corpora)
            found = await find_terms(search, parsed, chunks=chunks) if by_words else FoundTerms()
            plan = self._plan(asked, found.terms, corpora, meant, few=allowed.few)
            rows, note = await self._demanding(search, asked, plan, allowed, parsed)
        return SearchResult(
            hits=hits_of(
                rows,
                terms=found.terms,
                chunks=plan.chunks,
                fused_with=plan.share if plan.words is not None and plan.vector is not None else None,
                fold=asked.fold_duplicates,
                join=asked.join_neighbours,
                top_k=asked.top_k,
            ),
            mode=asked.mode,
            embedding_model=None if meant is None else meant.embedder.model,
            note=note or _note(asked, plan, rows, by_words=by_words),
            degraded=degraded,
            corrected=_shown(found.corrected, rows),
        )

    def _plan(
        self,
        asked: SearchKnowledge,
        terms: Sequence[Term],
        corpora: list[Corpus],
        meant: _Meant | None,
        *,
        few: bool,
    ) -> _Plan:
        """Decide what each leg looks for, and how: of few passages each is looked at."""
        chunks = sum(corpus.chunks for corpus in corpora)
        share, vector = 0.0, None
        if meant is not None:
            share = _share(asked, terms, meant.embedder, chunks=chunks)
            exact = few or chunks <= EXACT_VECTORS_MAX
            vector = VectorLeg(meant.vector, meant.set_id, meant.embedder.similarity_min, share, exact)
        return _Plan(
            words=choose_words(terms, chunks=chunks, candidates=chunks if few else self.keyword_candidates),
            vector=vector,
            share=share,
            chunks=chunks,
            average=sum(corpus.words for corpus in corpora) / chunks,
            most=most_of(terms, chunks=chunks),
        )

    async def _demanding(
        self, search: Search, asked: SearchKnowledge, plan: _Plan, allowed: Allowed, parsed: ParsedQuery
    ) -> tuple[list[Record], str | None]:
        """Rank what holds the query's phrases and no excluded word; without the phrases where nothing holds them."""
        if not parsed.demands:
            return await self._ranked(search, asked, plan, allowed), None
        must, must_not = await search.demands(parsed.phrases, parsed.excluded)
        excluding = None if must_not is None else f"!({must_not})"
        both = " & ".join(part for part in (must, excluding) if part is not None) or None
        rows = await self._ranked(search, asked, plan, replace(allowed, match=both))
        if rows or must is None:
            return rows, None
        return await self._ranked(search, asked, plan, replace(allowed, match=excluding)), NO_PHRASE

    async def _embedded(
        self, tenant: str, query: str, live: LiveSet | None, account: Account | None
    ) -> tuple[_Meant | None, tuple[Degraded, ...]]:
        """Embed a query for the set that is searched, and say what it cannot be compared with."""
        if live is None:
            return None, ()
        self.passages.note_query(tenant, query)
        embedder = self.queries.embedder_of(live.model, live.asked_dimensions)
        found = await self.queries.embed(tenant, query[:EMBEDDED_MAX_CHARS], account, embedder=embedder)
        if isinstance(found, Degraded):
            return None, (found,)
        vector = found.vectors[0]
        if live.dimensions is not None and live.dimensions != len(vector):
            detail = f"passages have {live.dimensions} dimensions, queries {len(vector)}: embed the passages again"
            return None, (Degraded(leg="vectors", reason="model", detail=detail),)
        waiting = (Degraded(leg="vectors", reason="building", detail=_waiting(live)),) if live.waiting else ()
        return _Meant(vector, live.set_id, embedder), waiting

    async def _ranked(self, search: Search, asked: SearchKnowledge, plan: _Plan, allowed: Allowed) -> list[Record]:
        """Rank what the words choose: all that has any of them where they are rare, else what postings choose of them.

        Of a tenant without postings passages with all words come first where even the rarest is common, then any.
        """
        rows: list[Record] = []
        words, vector = plan.words, plan.vector
        wanted = asked.top_k + min(asked.top_k, COPIES_MAX) if asked.fold_duplicates else asked.top_k
        candidates = max(wanted, self.leg_candidates)
        chosen = None
        if words is not None and not words.complete:
            chosen = await search.choose(words, count=candidates * CHOSEN_FACTOR)
        for match in _matches(words, chosen):
            leg = None
            if words is not None and (match is not None or chosen is not None):
                weight = 1 - plan.share
                leg = WordsLeg(match, words.terms, words.weights, plan.average, weight, plan.most, chosen)
            if leg is None and vector is None:
                break
            with self.telemetry.calling("SELECT retrieval.chunks", SQL_SPAN):
                rows = await search.best(
                    leg, vector, allowed=allowed, candidates=candidates, top_k=wanted, min_score=asked.min_score
                )
            if sum(row["words_rank"] is not None for row in rows) >= asked.top_k:
                break
        return rows


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one search looks for."""

    words: Words | None
    vector: VectorLeg | None
    share: float
    chunks: int
    average: float
    most: float


def _allowed(asked: SearchKnowledge) -> Allowed:
    where = {key: condition.asked() for key, condition in asked.filter.where.items()}
    return Allowed(
        document_ids=asked.filter.document_ids,
        metadata=storable_json(asked.filter.metadata),
        where=storable_json(where),
        collections=asked.filter.collections,
        names=asked.audience or (),
    )


def _note(asked: SearchKnowledge, plan: _Plan, rows: Sequence[Record], *, by_words: bool) -> str | None:
    """Say that words found nothing. Words of passages that may not be found and words of none are told alike."""
    found = any(row["words_rank"] is not None for row in rows)
    unknown = plan.words is None or asked.min_score is None
    return NO_WORDS if by_words and not found and unknown else None


def _shown(corrected: Mapping[str, Sequence[str]], rows: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    """Return the near words that what was found holds: others may be of passages that may not be found."""
    held = {word for row in rows for word in row["held"]}
    shown = {word: tuple(one for one in near if quoted(one) in held) for word, near in corrected.items()}
    return {word: near for word, near in shown.items() if near}


@dataclass(frozen=True, slots=True)
class _Meant:
    """A query as a vector, and the set that it is compared with."""

    vector: Vector
    set_id: int
    embedder: Embedder


def _by_vector(asked: SearchKnowledge) -> bool:
    return asked.mode == "vector" or (asked.mode == "hybrid" and asked.vector_weight != 0)


def _share(asked: SearchKnowledge, terms: Sequence[Term], embedder: Embedder, *, chunks: int) -> float:
    if asked.vector_weight is not None:
        return asked.vector_weight
    known, unknown = embedder.vector_weight, embedder.vector_weight_unknown
    return choose_share(terms, chunks=chunks, known=known, unknown=unknown)


def _waiting(live: LiveSet) -> str:
    some = f"{live.waiting}" if live.waiting < WAITING_COUNTED_MAX else f"{WAITING_COUNTED_MAX} or more"
    return f"passages of {some} documents have no vectors of {live.model} yet: they are found by their words alone"


def _matches(words: Words | None, chosen: Chosen | None) -> list[str | None]:
    if words is None:
        return [None]
    if chosen is not None:
        return [words.rare]
    return [words.any_of] if words.all_of is None else [words.all_of, words.any_of]
