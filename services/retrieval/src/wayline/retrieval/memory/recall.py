"""Recall facts by meaning, words and spelling, and count what was recalled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from wayline.contracts.memory import NO_MEMORIES, FactsRecalled, RecallInsights, RecallMemories
from wayline.retrieval.memory.fact_rows import found_fact_of
from wayline.retrieval.memory.fact_table import FactTable, Place, with_conflicts
from wayline.retrieval.memory.fact_vectors import FactVectors, cosines
from wayline.retrieval.memory.plan_save import owner_of_subject
from wayline.retrieval.memory.rank_facts import AskedTerm, Wanted, rank_facts
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
        wanted = Wanted(asked.categories, asked.tiers, asked.similarity_min, asked.always, asked.known)
        owner, terms = f"user:{asked.user_id}", asked.search_terms
        return await self._recall(asked, owner, terms, wanted, nothing=NO_MEMORIES, own_only=asked.own_only)

    async def insights(self, asked: RecallInsights) -> FactsRecalled:
        """Find what is known about a subject."""
        owner, terms = owner_of_subject(asked.about), (asked.query,)
        return await self._recall(asked, owner, terms, Wanted(asked.categories), nothing=NO_INSIGHTS)

    async def _recall(
        self,
        asked: RecallMemories | RecallInsights,
        owner: str,
        terms: Sequence[str],
        wanted: Wanted,
        *,
        nothing: str,
        own_only: bool = False,
    ) -> FactsRecalled:
        texts = [text for term in terms if (text := storable(term).strip()[:TERM_CHARS_MAX])]
        now = datetime.now(UTC)
        reading = self.facts.to_recall(
            asked.tenant,
            owner,
            model=self.vectors.model if texts else None,
            always=wanted.always,
            now=now,
            as_of=asked.as_of,
            own_only=own_only,
        )
        # Beside each other: what is asked for is embedded on another core, or by a provider.
        (vectors, degraded), known = await asyncio.gather(self.vectors.of(asked.tenant, texts), reading)
        found = rank_facts(
            known.rows,
            [AskedTerm.of(text) for text in texts],
            wanted,
            meaning=self.vectors.weight,
            cosine_min=self.vectors.similarity_min,
            cosines=cosines([row["vector"] for row in known.rows], vectors),
        )
        facts = with_conflicts([found_fact_of(one) for one in found[: asked.limit]], known.conflicts)
        if asked.key is not None and facts and asked.as_of is None:
            place = Place.of(asked.conversation, asked.job_id)
            await self.facts.count_uses(asked.tenant, [fact.fact_id for fact in facts], asked.key, now, place=place)
        return FactsRecalled(
            facts=tuple(facts),
            matched=len(found),
            total=len(known.rows),
            gone=known.gone,
            note=None if facts else (NOTHING_FITS if known.rows else nothing),
            degraded=degraded,
        )
