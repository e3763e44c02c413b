"""Recall facts by meaning, words and spelling, and count what was recalled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from wayline.contracts.memory import NO_MEMORIES, FactsRecalled, RecallInsights, RecallMemories
from wayline.retrieval.memory.fact_rows import asked_terms
from wayline.retrieval.memory.fact_table import Also, FactTable, Place
from wayline.retrieval.memory.fact_vectors import FactVectors
from wayline.retrieval.memory.plan_save import owner_of_subject
from wayline.retrieval.storable import storable

TERM_CHARS_MAX = 2_000
"""Of one search term what is compared; the rest of a longer one is left out."""
NO_INSIGHTS = "No insights stored for this subject"
NOTHING_FITS = "Nothing that is stored fits what was asked for"


@dataclass(frozen=True, slots=True)
class Recaller:
    """Finds facts of one user or one subject."""

    facts: FactTable
    vectors: FactVectors

    async def memories(self, asked: RecallMemories) -> FactsRecalled:
        """Find what is remembered of a user; a note says that there is nothing at all."""
        return await self._recall(
            asked.tenant,
            f"user:{asked.user_id}",
            asked.search_terms,
            asked.categories,
            asked.tiers,
            limit=asked.limit,
            key=asked.key,
            as_of=asked.as_of,
            nothing=NO_MEMORIES,
            place=Place.of(asked.conversation, asked.job_id),
            also=Also(asked.always, asked.known, asked.own_only, asked.similarity_min),
        )

    async def insights(self, asked: RecallInsights) -> FactsRecalled:
        """Find what is known about a subject."""
        return await self._recall(
            asked.tenant,
            owner_of_subject(asked.about),
            (asked.query,),
            asked.categories,
            None,
            limit=asked.limit,
            key=asked.key,
            as_of=asked.as_of,
            nothing=NO_INSIGHTS,
            place=Place.of(asked.conversation, asked.job_id),
        )

    async def _recall(
        self,
        tenant: str,
        owner: str,
        terms: Sequence[str],
        categories: Sequence[str] | None,
        tiers: Sequence[str] | None,
        *,
        limit: int,
        key: str | None,
        as_of: datetime | None,
        nothing: str,
        place: Place,
        also: Also = Also(),  # noqa: B008 - it holds nothing
    ) -> FactsRecalled:
        texts = [text for term in terms if (text := storable(term).strip()[:TERM_CHARS_MAX])]
        vectors, degraded = await self.vectors.of(tenant, texts)
        dimensions = vectors.shape[1] if vectors is not None else 0
        now = datetime.now(UTC)
        found = await self.facts.recall(
            tenant,
            owner,
            asked=asked_terms(texts, vectors),
            embedder=(self.vectors.model, dimensions, self.vectors.weight, self.vectors.similarity_min),
            categories=categories,
            tiers=tiers,
            limit=limit,
            now=now,
            as_of=as_of,
            also=also,
        )
        if key is not None and found.facts and as_of is None:
            await self.facts.count_uses(tenant, [fact.fact_id for fact in found.facts], key, now, place=place)
        note = nothing if found.total == 0 else (NOTHING_FITS if not found.facts else None)
        return found.model_copy(update={"note": note, "degraded": degraded})
