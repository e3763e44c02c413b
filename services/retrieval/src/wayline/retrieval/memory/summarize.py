"""Have summaries take the places of facts, in one transaction of their owner with what undoes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from wayline.chassis import Failpoint, reach
from wayline.contracts.memory_summaries import MemoriesSummarized, NewSummary, SummarizeMemories
from wayline.retrieval.memory.fact_table import FactTable, OwnedFacts, WriteKey
from wayline.retrieval.memory.fact_vectors import FactVectors
from wayline.retrieval.memory.plan_save import Owner
from wayline.retrieval.memory.plan_summary import KnownFacts, SummaryPlan, plan_summaries
from wayline.retrieval.memory.remember import fact_id
from wayline.retrieval.storable import storable

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vectors


@dataclass(frozen=True, slots=True)
class Summarizer:
    """Judges summaries, and writes those that may stand."""

    facts: FactTable
    vectors: FactVectors

    async def summarize(self, asked: SummarizeMemories) -> MemoriesSummarized:
        """Have summaries take the places of their facts, once for the key. Raises MemoryKeyConflict, and Retry."""
        texts = [storable(one.text).strip() or one.text[:1] for one in asked.summaries]
        summaries = [one.model_copy(update={"text": text}) for one, text in zip(asked.summaries, texts, strict=True)]
        vectors = None if asked.dry_run else (await self.vectors.of(asked.tenant, texts))[0]
        owner = Owner("memory", user_id=asked.user_id)
        write = None if asked.dry_run else WriteKey(asked.key, asked.content_hash())
        async with self.facts.owned(asked.tenant, owner, write) as owned:
            if owned.before is not None:
                return MemoriesSummarized.model_validate({**owned.before, "repeated": True})
            now = datetime.now(UTC)
            planned = await self._planned(owned, asked, summaries, vectors, now)
            if asked.dry_run:
                return MemoriesSummarized(outcomes=tuple(planned.plan.outcomes))
            run_id = _run_id(asked) if planned.stands_for else None
            await owned.apply(planned.plan, key=asked.key, model=self.vectors.model, now=now)
            if run_id is not None:
                by = f"job {asked.written.job_id}" if asked.written.job_id else asked.written.by or asked.key
                await owned.note_summaries(planned, run_id=run_id, by=by)
            answer = MemoriesSummarized(outcomes=tuple(planned.plan.outcomes), run_id=run_id)
            await owned.end(asked.key, answer, now)
        reach(Failpoint.RETRIEVAL_FACTS_SAVED)
        return answer

    async def _planned(
        self,
        owned: OwnedFacts,
        asked: SummarizeMemories,
        summaries: Sequence[NewSummary],
        vectors: Vectors | None,
        now: datetime,
    ) -> SummaryPlan:
        rows = {row.fact.fact_id: row for row in await owned.live()}
        return plan_summaries(
            summaries,
            asked.written,
            KnownFacts(rows, await owned.contradicted(list(rows))),
            vectors=[None] * len(summaries) if vectors is None else [vectors[n] for n in range(len(summaries))],
            new_id=lambda number: fact_id(asked.tenant, asked.key, number),
            now=now,
        )


def _run_id(asked: SummarizeMemories) -> str:
    """Return by what the run is undone: the same at every try."""
    return sha256(f"summary/{asked.tenant}/{asked.key}".encode()).hexdigest()[:32]
