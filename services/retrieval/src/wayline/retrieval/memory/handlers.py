"""What retrieval does with each message about what is remembered."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from wayline.contracts.errors import NotFound, Reject
from wayline.contracts.memory import (
    ChangeInsight,
    ChangeMemory,
    DeleteSubject,
    Fact,
    FactPage,
    FactsRecalled,
    FactsSaved,
    ForgetMemories,
    GetSubject,
    ListInsights,
    ListMemories,
    ListSubjects,
    MemoriesForgotten,
    PutSubject,
    RecallInsights,
    RecallMemories,
    SaveMemories,
    StoreInsights,
    Subject,
    SubjectDeleted,
    SubjectPage,
)
from wayline.contracts.memory_consolidation import (
    Consolidated,
    ConsolidateMemories,
    ConsolidationUndone,
    UndoConsolidation,
)
from wayline.contracts.memory_summaries import MemoriesSummarized, SummarizeMemories
from wayline.retrieval.memory.consolidation import Consolidation
from wayline.retrieval.memory.fact_table import FactTable
from wayline.retrieval.memory.plan_save import Owner, owner_of_subject
from wayline.retrieval.memory.recall import Recaller
from wayline.retrieval.memory.remember import Rememberer
from wayline.retrieval.memory.subject_table import SubjectTable
from wayline.retrieval.memory.summarize import Summarizer
from wayline.retrieval.storable import storable

CURSOR_SIGN = "\n"


@dataclass(frozen=True, slots=True)
class MemoryHandlers:
    """One coroutine per message heard."""

    rememberer: Rememberer
    recaller: Recaller
    facts: FactTable
    subjects: SubjectTable
    consolidation: Consolidation
    summarizer: Summarizer

    async def on_save(self, asked: SaveMemories) -> FactsSaved:
        """Remember facts about a user."""
        owner = Owner("memory", user_id=asked.user_id)
        return await self.rememberer.save(
            asked.tenant, owner, asked.facts, asked.written, key=asked.key, content_hash=asked.content_hash()
        )

    async def on_recall(self, asked: RecallMemories) -> FactsRecalled:
        """Find what is remembered of a user."""
        return await self.recaller.memories(asked)

    async def on_list(self, asked: ListMemories) -> FactPage:
        """List memories, the newest first."""
        facts = await self.facts.page(
            asked.tenant,
            "memory",
            owner=None if asked.user_id is None else f"user:{asked.user_id}",
            fact_ids=asked.fact_ids,
            states=asked.states,
            category=asked.category,
            tier=asked.tier,
            conversation=asked.conversation,
            after=read_cursor(asked.cursor),
            limit=asked.limit + 1,
        )
        page = page_of(facts, asked.limit)
        return page if asked.fact_ids is None else await self._in_whole(asked.tenant, page)

    async def on_change(self, asked: ChangeMemory) -> Fact:
        """Change a memory, or decide on a quarantined one."""
        return await self.rememberer.change(asked, "memory")

    async def on_forget(self, asked: ForgetMemories) -> MemoriesForgotten:
        """Delete what is remembered, and say how much it was."""
        deleted = 0
        if asked.subject_ref is not None and await self.subjects.get(asked.tenant, asked.subject_ref) is not None:
            deleted = 1
        forgotten = await self.facts.forget(asked)
        if deleted:
            await self.subjects.delete(asked.tenant, asked.subject_ref)  # type: ignore[arg-type]
        return forgotten.model_copy(update={"subjects": deleted})

    async def on_consolidate(self, asked: ConsolidateMemories) -> Consolidated:
        """Put facts in order, or say what would be done."""
        return await self.consolidation.run(asked)

    async def on_summarize(self, asked: SummarizeMemories) -> MemoriesSummarized:
        """Have summaries take the places of facts, or say what would be done."""
        return await self.summarizer.summarize(asked)

    async def on_undo(self, asked: UndoConsolidation) -> ConsolidationUndone:
        """Undo a consolidation."""
        return await self.consolidation.undo(asked)

    async def on_store(self, asked: StoreInsights) -> FactsSaved:
        """Remember insights about a subject."""
        owner = Owner("insight", user_id=asked.user_id, subject=asked.about, other=asked.other)
        return await self.rememberer.save(
            asked.tenant, owner, asked.facts, asked.written, key=asked.key, content_hash=asked.content_hash()
        )

    async def on_recall_insights(self, asked: RecallInsights) -> FactsRecalled:
        """Find what is known about a subject."""
        return await self.recaller.insights(asked)

    async def on_list_insights(self, asked: ListInsights) -> FactPage:
        """List insights: of a subject the most important, else the newest first."""
        if asked.about is not None and asked.fact_ids is None:
            facts = await self.facts.important(
                asked.tenant,
                owner_of_subject(asked.about),
                states=asked.states,
                category=asked.category,
                limit=asked.limit,
                now=datetime.now(UTC),
            )
            return FactPage(facts=tuple(facts))
        facts = await self.facts.page(
            asked.tenant,
            "insight",
            owner=None,
            fact_ids=asked.fact_ids,
            states=asked.states,
            category=asked.category,
            tier=None,
            conversation=None,
            after=read_cursor(asked.cursor),
            limit=asked.limit + 1,
        )
        page = page_of(facts, asked.limit)
        return page if asked.fact_ids is None else await self._in_whole(asked.tenant, page)

    async def on_change_insight(self, asked: ChangeInsight) -> Fact:
        """Change an insight, or decide on a quarantined one."""
        return await self.rememberer.change(asked, "insight")

    async def _in_whole(self, tenant: str, page: FactPage) -> FactPage:
        """Return facts that were asked for by their ids with what lists leave out."""
        facts = await self.facts.with_conversations(tenant, page.facts)
        facts = await self.facts.with_summarized(tenant, facts)
        return page.model_copy(update={"facts": tuple(facts)})

    async def on_get_subject(self, asked: GetSubject) -> Subject:
        """Return a subject."""
        found = await self.subjects.get(asked.tenant, asked.ref)
        if found is None:
            raise NotFound("subject", f"{asked.ref.type}/{asked.ref.id}")
        return found

    async def on_list_subjects(self, asked: ListSubjects) -> SubjectPage:
        """List subjects by type and id."""
        after = _read_subject_cursor(asked.cursor)
        found = await self.subjects.page(asked.tenant, asked.type, after, limit=asked.limit + 1)
        page = found[: asked.limit]
        more = encoded(page[-1].type, page[-1].id) if len(found) > asked.limit else None
        return SubjectPage(subjects=tuple(page), next_cursor=more)

    async def on_put_subject(self, asked: PutSubject) -> Subject:
        """Make or change a subject."""
        return await self.subjects.put(asked)

    async def on_delete_subject(self, asked: DeleteSubject) -> SubjectDeleted:
        """Delete a subject with its insights."""
        return await self.subjects.delete(asked.tenant, asked.ref)


def page_of(found: Sequence[Fact], limit: int) -> FactPage:
    """Return a page of facts, with the cursor of the next one where there are more."""
    page = found[:limit]
    more = None
    if len(found) > limit:
        last = page[-1]
        more = encoded(last.recorded_at.isoformat(), last.fact_id, str(last.version))
    return FactPage(facts=tuple(page), next_cursor=more)


def encoded(*parts: str) -> str:
    """Make the cursor of the page that begins after what these parts name."""
    return base64.urlsafe_b64encode(CURSOR_SIGN.join(parts).encode()).decode()


def read_cursor(cursor: str | None) -> tuple[datetime, str, int] | None:
    """Read the place in a list of facts that a cursor stands for. Raises Reject for one that is not ours."""
    if cursor is None:
        return None
    try:
        at, fact_id, version = _parts(cursor, 3)
        place = datetime.fromisoformat(at), storable(fact_id), int(version)
    except ValueError:
        raise _foreign() from None
    if place[0].utcoffset() != timedelta(0) or not 0 < place[2] < 2**31:
        raise _foreign()
    return place


def _read_subject_cursor(cursor: str | None) -> tuple[str, str] | None:
    if cursor is None:
        return None
    kind, name = _parts(cursor, 2)
    return storable(kind), storable(name)


def _parts(cursor: str, count: int) -> list[str]:
    try:
        parts = base64.urlsafe_b64decode(cursor).decode().split(CURSOR_SIGN)
    except (binascii.Error, ValueError):
        raise _foreign() from None
    if len(parts) != count:
        raise _foreign()
    return parts


def _foreign() -> Reject:
    return Reject("this cursor is not one of ours: ask for the first page again", code="invalid_cursor")
