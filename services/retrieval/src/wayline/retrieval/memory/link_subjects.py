"""Link subjects that are named in insights about others: what is new since the last look, some at a time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from uuid import uuid4

from wayline.contracts.memory import SubjectRef
from wayline.contracts.memory_consolidation import ConsolidateMemories, FoundLink
from wayline.retrieval.memory.fact_table import load_queries
from wayline.retrieval.memory.subject_names import NO_NAME, Named, name_key, named_in, phrases
from wayline.store import Connection, Record, Store
from wayline.store.queries import Queries

SUBJECTS_AT_ONCE = 50
"""New names: each is looked for in all insights of the tenant."""
FACTS_AT_ONCE = 200
"""Insights that are looked through in one transaction."""
COMPARED_AT_ONCE = 50
"""Insights whose words are in memory together: one may have 5,000 phrases."""
FACTS_MAX = 10_000
"""In one run; there may be more to do."""


class _Shown(Exception):
    """What a dry run has found is taken back."""


@dataclass(slots=True)
class SubjectLinks:
    """Finds and keeps the links of a tenant's subjects."""

    store: Store
    sql: Queries = field(default_factory=load_queries)

    async def find(self, asked: ConsolidateMemories, run_id: str) -> tuple[list[FoundLink], bool]:
        """Link what is named, or say what would be linked; and whether there is more to do."""
        found: list[FoundLink] = []
        looked = FACTS_AT_ONCE
        for _ in range(FACTS_MAX // FACTS_AT_ONCE):
            try:
                async with self.store.tenant(asked.tenant) as conn:
                    named = await self._name(conn, asked.tenant)
                    looked = await self._link(conn, asked, run_id, found)
                    if asked.dry_run:
                        raise _Shown
            except _Shown:
                return found, looked == FACTS_AT_ONCE
            if looked < FACTS_AT_ONCE and named < SUBJECTS_AT_ONCE:
                return found, False
        return found, True

    async def _name(self, conn: Connection, tenant: str) -> int:
        """Make the keys of new names, and have insights looked through again that may hold one of them."""
        rows = await conn.fetch(self.sql.unnamed_subjects, tenant, SUBJECTS_AT_ONCE)
        for row in rows:
            key = name_key(_ref(row), row["name"])
            await conn.execute(self.sql.set_name_key, tenant, row["type"], row["id"], key)
            if key != NO_NAME:
                await conn.execute(self.sql.look_again, tenant, (row["name"].strip() or row["id"]).lower())
        return len(rows)

    async def _link(self, conn: Connection, asked: ConsolidateMemories, run_id: str, found: list[FoundLink]) -> int:
        """Look through some insights, and return how many."""
        tenant = asked.tenant
        rows = await conn.fetch(self.sql.unlinked_facts, tenant, FACTS_AT_ONCE)
        for first in range(0, len(rows), COMPARED_AT_ONCE):
            await self._compare(conn, asked, run_id, found, rows[first : first + COMPARED_AT_ONCE])
        await conn.execute(
            self.sql.set_linked, tenant, [row["fact_id"] for row in rows], [row["version"] for row in rows]
        )
        return len(rows)

    async def _compare(
        self, conn: Connection, asked: ConsolidateMemories, run_id: str, found: list[FoundLink], rows: list[Record]
    ) -> None:
        tenant = asked.tenant
        # In a thread: in a script without spaces a text has thousands of phrases.
        said, keys = await asyncio.to_thread(_phrases_of, rows)
        called = await conn.fetch(self.sql.subjects_named, tenant, keys) if keys else []
        candidates = [Named(_ref(row), row["name"], row["name_key"]) for row in called]
        for row, held in zip(rows, said, strict=True):
            own = SubjectRef(type=row["subject_type"], id=row["subject_id"])
            for other in named_in(own, held, (one for one in candidates if one.key in held)):
                new = (tenant, own.type, own.id, other.type, other.id, row["fact_id"])
                if await conn.fetchval(self.sql.note_mention, *new) is None:
                    continue
                link = FoundLink(subject=own, other=other, fact_id=row["fact_id"])
                found.append(link)
                await self._note(conn, asked, link, row["version"], run_id)

    async def _note(
        self, conn: Connection, asked: ConsolidateMemories, link: FoundLink, version: int, run_id: str
    ) -> None:
        """Write down who linked what, and what undoes it."""
        reason = f"it names {link.other.type}/{link.other.id}"
        change_id = f"{run_id}/link/{uuid4().hex}"
        told = ("linked", asked.by, reason, run_id, link.model_dump(mode="json"))
        await conn.execute(self.sql.note_step, asked.tenant, change_id, link.fact_id, version, *told)

    async def take_back(self, conn: Connection, tenant: str, step: Record, *, by: str) -> bool:
        """Undo a link for good: it is not found again. False: it is gone already."""
        link = FoundLink.model_validate(step["before"])
        named = (link.subject.type, link.subject.id, link.other.type, link.other.id)
        return await conn.fetchval(self.sql.undo_mention, tenant, *named, by) is not None


def _phrases_of(rows: list[Record]) -> tuple[list[dict[str, bool]], list[str]]:
    """Return the phrases of each text, and all of them once."""
    said = [phrases(row["text"]) for row in rows]
    return said, list({key for one in said for key in one})


def _ref(row: Record) -> SubjectRef:
    return SubjectRef(type=row["type"], id=row["id"])
