"""A save and the vectors of its facts, which are made beside it and paid for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import pytest

from wayline.contracts.memory import ChangeMemory, Fact, FactChange, FactsSaved, NewFact, WrittenBy
from wayline.retrieval.memory.fact_quota import FactQuota
from wayline.retrieval.memory.fact_rules import Standing
from wayline.retrieval.memory.fact_table import FactTable
from wayline.retrieval.memory.fact_text import FactText
from wayline.retrieval.memory.fact_vectors import FactVectors
from wayline.retrieval.memory.memory_errors import MemoryKeyConflict
from wayline.retrieval.memory.plan_save import Owner, Row
from wayline.retrieval.memory.remember import Rememberer

NOW = datetime(2026, 11, 27, tzinfo=UTC)
ANN = Owner("memory", user_id="ann")
BONN, BEES = "Lives in Bonn.", "Keeps bees."


def stored(text: str, *, vector: Any = None) -> Row:
    """Return a fact as it is stored."""
    fact = Fact(
        fact_id=f"fact_{len(text)}",
        kind="memory",
        user_id="ann",
        text=text,
        category="profile",
        tier="context",
        source="user_noted",
        state="active",
        trust="own",
        recorded_at=NOW,
        last_said_at=NOW,
    )
    return Row(fact, FactText(text), vector)


class Facts:
    """The facts of one owner, whose save was answered before."""

    def __init__(self, *rows: Row, refused: Exception | None = None) -> None:
        self.rows = rows
        self.refused = refused
        self.embedded = list[str]()
        self.versions_embedded = list[int]()

    async def has_room(self, *_: Any) -> bool:
        return True

    @property
    def before(self) -> dict[str, Any]:
        return FactsSaved(outcomes=()).model_dump()

    @asynccontextmanager
    async def owned(self, *_: Any) -> AsyncIterator[Facts]:
        if self.refused is not None:
            raise self.refused
        yield self

    async def standing(self, *_: Any) -> list[Standing]:
        of_facts = [[getattr(row.fact, name) for name in Standing._fields[:-2]] for row in self.rows]
        return [Standing(*fields, is_embedded=False) for fields in of_facts]

    async def named(self, fact_ids: Sequence[str]) -> list[Row]:
        return [row for row in self.rows if row.fact.fact_id in fact_ids]

    async def set_vectors(self, _: str, rows: Sequence[Row], *__: Any) -> None:
        self.embedded += [row.fact.text for row in rows]
        self.versions_embedded += [row.fact.version for row in rows]

    async def find(self, _: str, kind: str, fact_id: str) -> Row | None:
        return next(iter(await self.named([fact_id])), None)

    async def apply(self, *_: Any, **__: Any) -> None: ...

    async def forget_old_versions(self) -> None: ...

    async def note_change(self, *_: Any) -> None: ...


class Vectors:
    """A provider of embeddings that answers a moment later, and the texts of calls that it has answered."""

    model = "m"

    def __init__(self) -> None:
        self.answered = list[str]()

    async def of(self, _: str, texts: Sequence[str]) -> tuple[Any, None]:
        for _turn in range(20):
            await asyncio.sleep(0)
        self.answered += texts
        return np.zeros((len(texts), 2)) if texts else None, None


def remembering(facts: Facts, vectors: Vectors) -> Rememberer:
    table = cast(FactTable, facts)
    return Rememberer(table, cast(FactVectors, vectors), FactQuota(table, 10))


async def save(facts: Facts, vectors: Vectors, text: str) -> FactsSaved:
    new = NewFact(text=text, category="profile")
    return await remembering(facts, vectors).save("acme", ANN, [new], WrittenBy(), key="k", content_hash="h")


async def test_a_save_that_is_refused_leaves_no_paid_call_unanswered():
    vectors = Vectors()
    with pytest.raises(MemoryKeyConflict):
        await save(Facts(refused=MemoryKeyConflict(key="k")), vectors, BONN)

    assert vectors.answered == [BONN]


async def test_a_save_asked_again_embeds_each_fact_once():
    facts, vectors = Facts(stored(BONN), stored(BEES)), Vectors()
    await save(facts, vectors, BONN)

    assert (sorted(vectors.answered), sorted(facts.embedded)) == ([BEES, BONN], [BEES, BONN])


async def test_a_fact_with_a_vector_meanwhile_is_not_embedded_again():
    facts, vectors = Facts(stored(BEES, vector=np.zeros(2))), Vectors()
    await save(facts, vectors, BONN)

    assert (vectors.answered, facts.embedded) == ([BONN], [])


async def test_a_fact_changed_while_it_is_embedded_gets_its_vector():
    facts, vectors = Facts(stored(BONN)), Vectors()
    asked = ChangeMemory(tenant="acme", fact_id=stored(BONN).fact.fact_id, by="ops", change=FactChange(importance=9))

    changed = await remembering(facts, vectors).change(asked, "memory")

    assert (changed.version, facts.embedded, facts.versions_embedded) == (2, [BONN], [2])
