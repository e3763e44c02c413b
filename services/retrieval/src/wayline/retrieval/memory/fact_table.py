"""The tables of facts: what a save plans is written in one transaction, under the lock of its owner."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4
from zlib import crc32

from wayline.chassis import Failpoint, reach
from wayline.contracts.base import Frozen
from wayline.contracts.memory import (
    CONVERSATIONS_MAX,
    Fact,
    FactConversation,
    ForgetMemories,
    MemoriesForgotten,
    SummarizedFact,
)
from wayline.retrieval.memory.fact_rows import (
    COLUMNS,
    arguments_of,
    fact_of,
    keys_of,
    row_of,
    summarized_of,
)
from wayline.retrieval.memory.fact_rules import KEYS_KEPT_DAYS, RETIRED_MAX, Standing
from wayline.retrieval.memory.forget_facts import forget_facts
from wayline.retrieval.memory.memory_errors import MemoryKeyConflict
from wayline.retrieval.memory.plan_save import Owner, Plan, Row, owner_of_subject
from wayline.retrieval.memory.plan_summary import SummaryPlan, summary_steps
from wayline.store import Connection, Record, Store
from wayline.store.queries import Queries

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vector

AnyFact = TypeVar("AnyFact", bound=Fact)
NOW = "retired_at IS NULL AND state = 'active' AND (expires_at IS NULL OR expires_at > $3)"
THEN = (
    "state NOT IN ('quarantined', 'rejected') AND recorded_at <= $3 AND (retired_at IS NULL OR retired_at > $3) "
    "AND (expires_at IS NULL OR expires_at > $3)"
)
SWEEP_EVERY = 16
"""One save in so many forgets up to a hundred keys that are too old, and the versions that are too many."""
OWN_OR_INFERRED = ["own", "inferred"]
"""What is recalled: a fact of strangers only once a person has released it, as their own."""


def load_queries() -> Queries:
    """Read the statements of this room."""
    return Queries.load(files("wayline.retrieval.memory").joinpath("queries.sql"))


class WriteKey(NamedTuple):
    """What makes a write be done once, and the hash of what it was asked for."""

    key: str
    content_hash: str


class Place(NamedTuple):
    """Where a fact was said or used."""

    conversation: str | None = None
    job_id: str | None = None

    @classmethod
    def of(cls, conversation: str | None, job_id: str | None) -> Place:
        """Return the place of a job, which is a conversation of its own where it is of no session."""
        return cls(conversation or job_id, job_id)


NOWHERE = Place()


class FactsToRecall(NamedTuple):
    """The facts of an owner that may be recalled, as rows, with their vectors."""

    rows: Sequence[Record]
    conflicts: Mapping[str, Sequence[str]]
    """Those that contradict a fact."""
    gone: tuple[str, ...]
    """Of the facts that were told before those that are not remembered any more."""


class FactTable:
    """Facts, their versions, uses and conflicts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = load_queries()

    @asynccontextmanager
    async def owned(self, tenant: str, owner: Owner, write: WriteKey | None = None) -> AsyncIterator[OwnedFacts]:
        """Open a transaction that alone writes facts of this owner, under a key or none. Raises MemoryKeyConflict."""
        async with self._store.tenant(tenant) as conn:
            owned = OwnedFacts(conn, self._sql, tenant, owner)
            if write is None:
                await conn.execute(self._sql.lock_owner, tenant, owner.name)
            else:
                await owned.begin(write)
            yield owned

    async def has_room(self, tenant: str, most: int) -> bool:
        """Return whether a tenant has fewer facts than it may."""
        return bool(await self._store.fetchval(tenant, self._sql.has_room, tenant, most))

    async def find(self, tenant: str, kind: str, fact_id: str) -> Row | None:
        """Return a fact that is not history."""
        row = await self._store.fetchrow(tenant, self._sql.lock_fact, tenant, fact_id, kind)
        return row_of(row) if row is not None else None

    async def to_recall(
        self,
        tenant: str,
        owner: str,
        *,
        model: str | None,
        always: Collection[str],
        now: datetime,
        as_of: datetime | None = None,
        own_only: bool = False,
    ) -> FactsToRecall:
        """Read the facts of an owner, with the vectors of a model, and which of those in `always` are gone."""
        statement = self._sql.facts_to_recall.replace("{known_then}", NOW if as_of is None else THEN)
        wanted = (tenant, owner, as_of or now, ["own"] if own_only else OWN_OR_INFERRED, model)
        rows = await self._store.fetch(tenant, statement.replace("{columns}", COLUMNS), *wanted)
        against = await self._conflicts(tenant, [row["fact_id"] for row in rows])
        gone: list[str] = []
        if always:
            known = await self._store.fetch(tenant, self._sql.gone_facts, tenant, list(always), owner, now)
            gone = [row["fact_id"] for row in known]
        return FactsToRecall(rows, against, tuple(gone))

    async def count_uses(self, tenant: str, fact_ids: Sequence[str], key: str, now: datetime, *, place: Place) -> None:
        """Count a use of each fact, once for the key, and where that was."""
        await self._store.execute(tenant, self._sql.count_uses, tenant, list(fact_ids), key, now, *place, True)

    async def set_vectors(self, tenant: str, rows: Sequence[Row], vectors: Sequence[Vector], model: str) -> None:
        """Store the vectors of versions that have none of this model."""
        made = [
            (tenant, row.fact.fact_id, row.fact.version, vector, model)
            for row, vector in zip(rows, vectors, strict=True)
        ]
        if made:
            await self._store.executemany(tenant, self._sql.set_vector, made)

    async def with_conversations(self, tenant: str, facts: Sequence[Fact]) -> list[Fact]:
        """Return facts with the conversations in which they were said or used, of each the newest."""
        ids = [fact.fact_id for fact in facts]
        rows = await self._store.fetch(tenant, self._sql.conversations_of, tenant, ids, CONVERSATIONS_MAX)
        found: dict[str, list[FactConversation]] = {}
        for row in rows:
            fields = dict(row)
            found.setdefault(fields.pop("fact_id"), []).append(FactConversation(**fields))
        return [fact.model_copy(update={"conversations": tuple(found.get(fact.fact_id, ()))}) for fact in facts]

    async def with_summarized(self, tenant: str, facts: Sequence[Fact]) -> list[Fact]:
        """Return facts with those that they stand for."""
        rows = await self._store.fetch(tenant, self._sql.summarized_in, tenant, [fact.fact_id for fact in facts])
        found: dict[str, list[SummarizedFact]] = {}
        for row in rows:
            found.setdefault(row["summarized_in"], []).append(summarized_of(row))
        return [fact.model_copy(update={"stands_for": tuple(found.get(fact.fact_id, ()))}) for fact in facts]

    async def page(
        self,
        tenant: str,
        kind: str,
        *,
        owner: str | None,
        fact_ids: Sequence[str] | None,
        states: Sequence[str],
        category: str | None,
        tier: str | None,
        conversation: str | None,
        after: tuple[datetime, str, int] | None,
        limit: int,
    ) -> list[Fact]:
        """Return facts, the newest first."""
        of_owner = "$3::text IS NULL" if owner is None else "owner = $3"
        at, fact_id, version = after or (None, None, None)
        rows = await self._store.fetch(
            tenant,
            self._sql.list_facts.replace("{of_owner}", of_owner),
            *(tenant, kind, owner, _list(fact_ids), list(states), category, tier, conversation),
            *(at, fact_id, limit, version),
        )
        return await self._with_conflicts(tenant, [fact_of(row) for row in rows])

    async def important(
        self, tenant: str, owner: str, *, states: Sequence[str], category: str | None, limit: int, now: datetime
    ) -> list[Fact]:
        """Return the most important insights of a subject."""
        wanted = (tenant, owner, list(states), category, limit, now)
        rows = await self._store.fetch(tenant, self._sql.list_important, *wanted)
        return await self._with_conflicts(tenant, [fact_of(row) for row in rows])

    async def forget(self, asked: ForgetMemories) -> MemoriesForgotten:
        """Delete facts with all that is kept of them, in one transaction."""
        tenant, subject = asked.tenant, asked.subject_ref
        owners = [f"user:{asked.user_id}"] if asked.user_id is not None else []
        owners += [owner_of_subject(subject)] if subject is not None else []
        named = (subject.type, subject.id) if subject is not None else (None, None)
        async with self._store.tenant(tenant) as conn:
            for owner in owners:
                await conn.execute(self._sql.lock_owner, tenant, owner)
            wanted = (tenant, asked.user_id, owners, *named, list(asked.fact_ids), asked.job_id)
            ids = [row["fact_id"] for row in await conn.fetch(self._sql.facts_to_forget, *wanted)]
            return await forget_facts(conn, self._sql, tenant, ids, owners, bring_back=asked.bring_back)

    async def _with_conflicts(self, tenant: str, facts: list[Fact]) -> list[Fact]:
        against = await self._conflicts(tenant, [one.fact_id for one in facts])
        return with_conflicts(facts, against)

    async def _conflicts(self, tenant: str, fact_ids: list[str]) -> Mapping[str, list[str]]:
        """Return for each fact those that contradict it."""
        against: dict[str, list[str]] = {}
        for pair in await self._store.fetch(tenant, self._sql.conflicts_of, tenant, fact_ids) if fact_ids else ():
            against.setdefault(pair["fact_id"], []).append(pair["other_id"])
        return against


class OwnedFacts:
    """The statements of one transaction that writes facts of one owner."""

    def __init__(self, conn: Connection, sql: Queries, tenant: str, owner: Owner) -> None:
        self._conn = conn
        self._sql = sql
        self._tenant = tenant
        self._owner = owner
        self.before: dict[str, Any] | None = None
        """What was answered under the key before."""

    async def begin(self, write: WriteKey) -> None:
        """Lock the owner, and take a key or read what was answered under it. Raises MemoryKeyConflict."""
        taken = await self._conn.fetchval(self._sql.begin_write, self._tenant, self._owner.name, *write)
        if taken is not None:
            return
        row = await self._conn.fetchrow(self._sql.find_write, self._tenant, write.key)
        assert row is not None
        if (row["owner"], row["content_hash"]) != (self._owner.name, write.content_hash):
            raise MemoryKeyConflict(key=write.key)
        self.before = row["answer"]

    async def standing(self, keys: Sequence[str] = (), fact_ids: Sequence[str] = ()) -> list[Standing]:
        """Return how the owner's facts stand that are not history; compared are those that share a key or are named."""
        wanted = (self._tenant, self._owner.name, list(keys), list(fact_ids))
        return [Standing(*row) for row in await self._conn.fetch(self._sql.standing_facts, *wanted)]

    async def named(self, fact_ids: Sequence[str]) -> list[Row]:
        """Return the facts of these ids that are not history, the oldest first."""
        if not fact_ids:
            return []
        wanted = (self._tenant, self._owner.name, list(fact_ids))
        return [row_of(row) for row in await self._conn.fetch(self._sql.named_facts, *wanted)]

    async def live(self) -> list[Row]:
        """Return all facts that are not history."""
        rows = await self._conn.fetch(self._sql.live_facts, self._tenant, self._owner.name)
        return [row_of(row) for row in rows]

    async def contradicted(self, fact_ids: Sequence[str]) -> frozenset[str]:
        """Return the facts that an active one contradicts."""
        pairs = await self._conn.fetch(self._sql.conflicts_of, self._tenant, list(fact_ids))
        return frozenset(pair["fact_id"] for pair in pairs)

    async def note_summaries(self, planned: SummaryPlan, *, run_id: str, by: str) -> None:
        """Note which facts each summary stands for, as steps that can be undone, the summary's own the last."""
        number = 0
        for summary_id, rows in planned.stands_for.items():
            named = [row.fact.fact_id for row in rows]
            await self._conn.execute(self._sql.note_summarized, self._tenant, named, summary_id)
            for step in summary_steps(summary_id, rows):
                change = (self._tenant, f"{run_id}/{number:06}", step.fact_id, step.version)
                noted = (step.what, by, f"fact {summary_id} stands for it", run_id, step.before)
                await self._conn.execute(self._sql.note_step, *change, *noted)
                number += 1

    async def ensure_subjects(self) -> None:
        """Make the subjects that are not known yet."""
        for subject in (self._owner.subject, self._owner.other):
            if subject is not None:
                await self._conn.execute(self._sql.ensure_subject, self._tenant, subject.type, subject.id)

    async def apply(self, plan: Plan, *, key: str | None, model: str, now: datetime, place: Place = NOWHERE) -> None:
        """Write what was planned; `place`: the conversation in which it was said."""
        reach(Failpoint.RETRIEVAL_FACTS_BEFORE)
        tenant, conn, sql = self._tenant, self._conn, self._sql
        gone = {(one.fact_id, one.version): one for one in plan.retired}
        for one in plan.retired:
            await conn.execute(sql.retire_fact, tenant, one.fact_id, one.version, one.state, one.because, now)
        for row in plan.inserts:
            retired = gone.get((row.fact.fact_id, row.fact.version))
            arguments = arguments_of(tenant, self._owner, row, key=key, model=model, retired=retired, now=now)
            await conn.execute(sql.insert_fact, *arguments)
        for said in plan.said_again:
            await conn.execute(
                sql.say_again,
                *(tenant, said.fact_id, said.version, now, said.expires_at, list(said.keywords)),
                list(said.compared_by),
            )
        for pair in plan.conflicts:
            await conn.execute(sql.add_conflict, tenant, pair.fact_id, pair.other_id, pair.why)
        if plan.used and key is not None:
            await conn.execute(sql.count_uses, tenant, sorted(set(plan.used)), key, now, *place, False)
        said_here = {row.fact.fact_id for row in plan.inserts} | {said.fact_id for said in plan.said_again}
        if said_here and place.conversation is not None:
            await conn.execute(sql.note_said, tenant, sorted(said_here), *place, now)
        reach(Failpoint.RETRIEVAL_FACTS_AFTER)

    async def set_keys(self, rows: Sequence[Row]) -> None:
        """Store the keys of facts that have none: a version wrote them that makes none."""
        made = [{"fact_id": row.fact.fact_id, "version": row.fact.version, "keys": keys_of(row)} for row in rows]
        if made:
            await self._conn.execute(self._sql.set_keys, self._tenant, made)

    async def end(self, key: str, answer: Frozen, now: datetime) -> None:
        """Keep the answer under its key, and now and then forget what is too old."""
        stored = answer.model_dump(mode="json")
        await self._conn.execute(self._sql.end_write, self._tenant, key, stored)
        if crc32(key.encode()) % SWEEP_EVERY == 0:
            oldest = now - timedelta(days=KEYS_KEPT_DAYS)
            await self._conn.execute(self._sql.forget_old_writes, self._tenant, self._owner.name, oldest)
            await self.forget_old_versions()

    async def forget_old_versions(self) -> None:
        """Delete the oldest versions that are history, where they are too many."""
        await self._conn.execute(self._sql.forget_old_versions, self._tenant, self._owner.name, RETIRED_MAX)

    async def note_change(self, fact: Fact, what: str, by: str, reason: str | None) -> None:
        """Write down who decided what about a fact."""
        change = (self._tenant, uuid4().hex, fact.fact_id, fact.version, what, by, reason)
        await self._conn.execute(self._sql.note_change, *change)


def with_conflicts(facts: Sequence[AnyFact], against: Mapping[str, Sequence[str]]) -> list[AnyFact]:
    """Return facts with those that contradict them."""
    named = [(fact, tuple(against.get(fact.fact_id, ()))) for fact in facts]
    return [fact.model_copy(update={"conflicts_with": others}) if others else fact for fact, others in named]


def _list(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)
