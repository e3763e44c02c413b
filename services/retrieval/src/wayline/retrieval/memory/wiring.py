"""What retrieval's memory is made of, and what it hears."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from wayline.chassis import Ask, asks
from wayline.contracts.memory import (
    ChangeInsight,
    ChangeMemory,
    DeleteSubject,
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
)
from wayline.contracts.memory_consolidation import ConsolidateMemories, UndoConsolidation
from wayline.contracts.memory_summaries import SummarizeMemories
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.memory.consolidation import Consolidation
from wayline.retrieval.memory.fact_quota import FactQuota
from wayline.retrieval.memory.fact_table import FactTable
from wayline.retrieval.memory.fact_vectors import FactVectors
from wayline.retrieval.memory.handlers import MemoryHandlers
from wayline.retrieval.memory.recall import Recaller
from wayline.retrieval.memory.remember import Rememberer
from wayline.retrieval.memory.subject_table import SubjectTable
from wayline.retrieval.memory.summarize import Summarizer
from wayline.store import Store


def memory_asks(store: Store, texts: TextEmbedder, *, per_tenant_max: int, slots: int) -> list[Ask[Any]]:
    """Return the requests about what is remembered, bound to what answers them."""
    facts, vectors = FactTable(store), FactVectors(texts)
    handlers = MemoryHandlers(
        Rememberer(facts, vectors, FactQuota(facts, per_tenant_max)),
        Recaller(facts, vectors),
        facts,
        SubjectTable(store),
        Consolidation(store, texts.model),
        Summarizer(facts, vectors),
    )
    return [
        asks(SaveMemories, handlers.on_save, slots=slots),
        asks(RecallMemories, handlers.on_recall, slots=slots),
        asks(ListMemories, handlers.on_list),
        asks(ChangeMemory, handlers.on_change),
        asks(ForgetMemories, handlers.on_forget),
        asks(ConsolidateMemories, handlers.on_consolidate),
        asks(UndoConsolidation, handlers.on_undo),
        asks(SummarizeMemories, handlers.on_summarize),
        asks(StoreInsights, handlers.on_store, slots=slots),
        asks(RecallInsights, handlers.on_recall_insights, slots=slots),
        asks(ListInsights, handlers.on_list_insights),
        asks(ChangeInsight, handlers.on_change_insight),
        asks(GetSubject, handlers.on_get_subject),
        asks(ListSubjects, handlers.on_list_subjects),
        asks(PutSubject, handlers.on_put_subject),
        asks(DeleteSubject, handlers.on_delete_subject),
    ]


def forget_facts(store: Store) -> Callable[[ForgetMemories], Awaitable[MemoriesForgotten]]:
    """Return what deletes all that is remembered of a user, a subject or a job."""
    facts, subjects = FactTable(store), SubjectTable(store)

    async def forget(asked: ForgetMemories) -> MemoriesForgotten:
        forgotten = await facts.forget(asked)
        subject = asked.subject_ref
        if subject is not None and await subjects.get(asked.tenant, subject) is not None:
            await subjects.delete(asked.tenant, subject)
        return forgotten

    return forget
