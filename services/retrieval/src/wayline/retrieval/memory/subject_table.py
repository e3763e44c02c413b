"""The tables of subjects and of the links between them."""

from __future__ import annotations

from wayline.contracts.errors import NotFound
from wayline.contracts.memory import PutSubject, Subject, SubjectDeleted, SubjectRef
from wayline.retrieval.memory.fact_table import load_queries
from wayline.retrieval.memory.forget_facts import forget_facts
from wayline.retrieval.memory.memory_errors import VersionConflict
from wayline.retrieval.memory.plan_save import owner_of_subject
from wayline.retrieval.storable import storable, storable_json
from wayline.store import Connection, Record, Store


class SubjectTable:
    """Subjects by type and id."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = load_queries()

    async def get(self, tenant: str, ref: SubjectRef) -> Subject | None:
        """Return a subject with its links and the number of its insights."""
        row = await self._store.fetchrow(tenant, self._sql.get_subject, tenant, ref.type, ref.id)
        return subject_of(row) if row is not None else None

    async def page(self, tenant: str, kind: str | None, after: tuple[str, str] | None, *, limit: int) -> list[Subject]:
        """Return subjects by type and id."""
        rows = await self._store.fetch(tenant, self._sql.list_subjects, tenant, kind, *(after or (None, None)), limit)
        return [subject_of(row) for row in rows]

    async def put(self, asked: PutSubject) -> Subject:
        """Make or change a subject and its links. Raises VersionConflict, and NotFound for a link to nowhere."""
        tenant, ref = asked.tenant, asked.ref
        async with self._store.tenant(tenant) as conn:
            await conn.execute(self._sql.lock_owner, tenant, owner_of_subject(ref))
            await self._check(conn, asked)
            fields = (storable(asked.name), storable_json(asked.attributes))
            await conn.fetchval(self._sql.put_subject, tenant, ref.type, ref.id, *fields, None)
            await conn.execute(self._sql.unlink_subject, tenant, ref.type, ref.id)
            for link in asked.links:
                named = (tenant, ref.type, ref.id, link.type, link.id, link.kind)
                if await conn.fetchval(self._sql.link_subject, *named) is None:
                    raise NotFound("subject", f"{link.type}/{link.id}")
            row = await conn.fetchrow(self._sql.get_subject, tenant, ref.type, ref.id)
        assert row is not None
        return subject_of(row)

    async def delete(self, tenant: str, ref: SubjectRef) -> SubjectDeleted:
        """Delete a subject with its links and its insights, also those in which it comes second."""
        owner = owner_of_subject(ref)
        async with self._store.tenant(tenant) as conn:
            await conn.execute(self._sql.lock_owner, tenant, owner)
            deleted = await conn.fetchval(self._sql.delete_subject, tenant, ref.type, ref.id)
            wanted = (tenant, None, [owner], ref.type, ref.id, [], None)
            ids = [row["fact_id"] for row in await conn.fetch(self._sql.facts_to_forget, *wanted)]
            if deleted is None and not ids:
                raise NotFound("subject", f"{ref.type}/{ref.id}")
            await forget_facts(conn, self._sql, tenant, ids, [owner])
        return SubjectDeleted(type=ref.type, id=ref.id, insights_deleted=len(ids))

    async def _check(self, conn: Connection, asked: PutSubject) -> None:
        if asked.if_version is None:
            return
        row = await conn.fetchrow(self._sql.get_subject, asked.tenant, asked.ref.type, asked.ref.id)
        found = row["version"] if row is not None else 0
        if found != asked.if_version:
            name = f"subject {asked.ref.type}/{asked.ref.id}"
            raise VersionConflict(name, wanted=asked.if_version, found=found)


def subject_of(row: Record) -> Subject:
    """Read a subject from its row."""
    return Subject(**dict(row))
