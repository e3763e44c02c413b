"""What a save and a recall read does not grow with what is remembered of others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import asyncpg
import pytest
import pytest_asyncio

from wayline.contracts.memory import NewFact, Quoted, RecallInsights, RecallMemories, SubjectRef, WrittenBy
from wayline.retrieval import app
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.memory.fact_quota import FactQuota
from wayline.retrieval.memory.fact_table import FactTable
from wayline.retrieval.memory.fact_vectors import FactVectors
from wayline.retrieval.memory.plan_save import Owner
from wayline.retrieval.memory.recall import Recaller
from wayline.retrieval.memory.remember import Rememberer
from wayline.retrieval.postgres import open_store
from wayline.retrieval.settings import LEXICAL_MODEL, Settings
from wayline.store import Store
from wayline.telemetry import Telemetry
from wayline.testkit import Platform

EACH = 10_000
"""Memories, and insights, all in the same words."""
FULL = {"memory": 26, "insight": 200}
"""What an owner has whose number is above 0 and below the last; one of another name has nothing."""
FILL = f"""
    SET wayline.tenant = 'acme';
    INSERT INTO facts (
        tenant, fact_id, kind, owner, user_id, subject_type, subject_id, text, text_hash, category, tier, confidence,
        source, state, trust, recorded_at, last_said_at, terms, trigrams, compared_by, embedding
    )
    SELECT 'acme', kind || n, kind, owner || n / size, user_id || n / size, subject_type, n / size,
        'I like green tea number ' || n, md5(n::text), 'preference', tier, 0.8,
        'agent_extracted', 'active', 'own', now(), now(),
        '{{like,green,tea}}', '{{gre,ree,een,tea}}', '{{like,green,tea}}', '[1,2]'
    FROM (VALUES
        ('memory', 'user:', '', NULL, 'core', {FULL["memory"]}),
        ('insight', 'subject:client/', NULL, 'client', NULL, {FULL["insight"]})
    ) AS one (kind, owner, user_id, subject_type, tier, size)
    CROSS JOIN generate_series(1, {EACH}) AS n;
    -- As autovacuum does within a minute: what Postgres has not counted it may read whole.
    ANALYZE;
"""
READ = """
    SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relid = 'facts'::regclass)
        + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relid = 'facts'::regclass)
"""


class Memory:
    """What retrieval keeps, with one connection, whose reads are counted."""

    def __init__(self, store: Store) -> None:
        embedder = app.make_embedder(Settings(embedding_model=LEXICAL_MODEL))
        facts, vectors = FactTable(store), FactVectors(TextEmbedder(embedder, Telemetry("test")))
        self._store = store
        self._remember = Rememberer(facts, vectors, FactQuota(facts, 10 * EACH))
        self._recall = Recaller(facts, vectors)
        self._numbers = count(EACH)

    async def save(self, kind: str, name: str) -> None:
        number = next(self._numbers)
        text = f"I like green tea number {number}"
        fact = NewFact(text=text, category="preference", quote=text, quoted=Quoted(job_id="j", seq=number))
        owner = Owner("memory", user_id=name) if kind == "memory" else Owner("insight", subject=_client(name))
        await self._remember.save("acme", owner, [fact], WrittenBy(), key=str(number), content_hash="h")

    async def recall(self, kind: str, name: str) -> None:
        # Whole words, and one that is found by its letters alone.
        query, key = "green tea graen", str(next(self._numbers))
        if kind == "memory":
            await self._recall.memories(RecallMemories(tenant="acme", user_id=name, search_terms=(query,), key=key))
        else:
            await self._recall.insights(RecallInsights(tenant="acme", about=_client(name), query=query, key=key))

    async def rows_read(self) -> int:
        """Return how many rows of facts, or entries of their indexes, have been read so far."""
        async with self._store.system() as conn:
            await conn.execute("SELECT pg_stat_force_next_flush()")
        async with self._store.system() as conn:
            return int(await conn.fetchval(READ))


def _client(name: str) -> SubjectRef:
    return SubjectRef(type="client", id=name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def memory(module_platform: Platform) -> AsyncIterator[Memory]:
    dsn = await module_platform.migrate("retrieval")
    owner = await asyncpg.connect(module_platform.database.dsn, server_settings={"search_path": "retrieval, public"})
    await owner.execute(FILL)
    await owner.close()
    store = await open_store(dsn, pool_size=1, wait_s=5)
    yield Memory(store)
    await store.close()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("call", "full"), [("save", "3"), ("recall", "4")])
@pytest.mark.parametrize("kind", ["memory", "insight"])
async def test_a_save_or_recall_reads_no_facts_of_others(memory: Memory, kind: str, *, call: str, full: str):
    for name, owned in ((full, FULL[kind]), (f"new to {call}", 0)):
        # So often that Postgres keeps one plan for all owners; the first of them counts the tenant's facts.
        for _ in range(6):
            await getattr(memory, call)(kind, name)
        before = await memory.rows_read()
        await getattr(memory, call)(kind, name)

        # Its own once for each statement, and what these hand on.
        assert await memory.rows_read() - before <= 3 * owned + 30
