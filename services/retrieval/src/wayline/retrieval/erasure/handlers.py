"""Counts and erases documents of a user, what is remembered, and what jobs planned."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.resources import files

from wayline.contracts.errors import NotFound
from wayline.contracts.forgetting import Erased, EraseFromRetrieval
from wayline.contracts.knowledge import DeleteDocument
from wayline.contracts.memory import ForgetMemories, MemoriesForgotten
from wayline.retrieval.documents.document_owners import DocumentOwners
from wayline.store import Connection, Queries, Store

FACTS_AT_ONCE = 1_000

DropDocument = Callable[[DeleteDocument], Awaitable[object]]
ForgetFacts = Callable[[ForgetMemories], Awaitable[MemoriesForgotten]]


class EraseHandlers:
    """Answers requests to erase; each part may be repeated."""

    def __init__(
        self, store: Store, owners: DocumentOwners, delete_document: DropDocument, forget_facts: ForgetFacts
    ) -> None:
        self._store = store
        self._owners = owners
        self._sql = Queries.load(files("wayline.retrieval.erasure").joinpath("queries.sql"))
        self._delete_document = delete_document
        self._forget_facts = forget_facts

    async def on_erase(self, asked: EraseFromRetrieval) -> Erased:
        """Erase what is of a user, a subject or jobs, and say how much it was."""
        documents: list[str] = []
        if asked.user_id is not None:
            documents = await self._owners.documents_of(asked.tenant, asked.user_id)
        async with self._store.tenant(asked.tenant) as conn:
            counts = await self._count(conn, asked, documents)
            kept = {}
            if asked.samples:
                same_words = await conn.fetchval(self._sql.passages_with_samples, asked.tenant, list(asked.samples))
                kept = {"passages_of_other_documents_with_the_same_words": same_words} if same_words else {}
        if not asked.count_only:
            for document_id in documents:
                await self._drop(asked.tenant, document_id)
            await self._erase_facts(asked)
            await self._erase_plans(asked)
            await self._store.execute(asked.tenant, self._sql.erase_queries, asked.tenant)
        return Erased(counts={name: count for name, count in counts.items() if count}, kept=kept)

    async def _count(self, conn: Connection, asked: EraseFromRetrieval, documents: list[str]) -> dict[str, int]:
        subject = asked.subject_ref
        owners = [] if asked.user_id is None else [f"user:{asked.user_id}"]
        owners += [] if subject is None else [f"subject:{subject.type}/{subject.id}"]
        named = (None, None) if subject is None else (subject.type, subject.id)
        row = await conn.fetchrow(
            self._sql.count_remembered, asked.tenant, asked.user_id, owners, *named, list(asked.job_ids)
        )
        assert row is not None
        passages = await conn.fetchval(self._sql.count_of_documents, asked.tenant, documents)
        return {"documents": len(documents), "passages": passages, **dict(row)}

    async def _drop(self, tenant: str, document_id: str) -> None:
        # One that was deleted before is not found: only who sent it was left.
        with suppress(NotFound):
            await self._delete_document(DeleteDocument(tenant=tenant, document_id=document_id))
        await self._owners.forget(tenant, document_id)

    async def _erase_facts(self, asked: EraseFromRetrieval) -> None:
        if asked.user_id is not None or asked.subject_ref is not None:
            await self._forget_facts(
                ForgetMemories(tenant=asked.tenant, user_id=asked.user_id, subject_ref=asked.subject_ref)
            )
        if not asked.job_ids:
            return
        await self._store.execute(asked.tenant, self._sql.erase_conversations, asked.tenant, list(asked.job_ids))
        rows = await self._store.fetch(asked.tenant, self._sql.facts_of_jobs, asked.tenant, list(asked.job_ids))
        facts = [row["fact_id"] for row in rows]
        for start in range(0, len(facts), FACTS_AT_ONCE):
            some = tuple(facts[start : start + FACTS_AT_ONCE])
            # A summary that one of the jobs wrote goes, and what it stands for was not the job's.
            await self._forget_facts(ForgetMemories(tenant=asked.tenant, fact_ids=some, bring_back=True))

    async def _erase_plans(self, asked: EraseFromRetrieval) -> None:
        if not asked.job_ids:
            return
        async with self._store.tenant(asked.tenant) as conn:
            for statement in (self._sql.erase_edges, self._sql.erase_tasks, self._sql.erase_planned):
                await conn.execute(statement, asked.tenant, list(asked.job_ids))
