"""What the router itself keeps of users and jobs: counted and erased."""

from __future__ import annotations

from importlib.resources import files

from wayline.contracts.forgetting import Erased
from wayline.router.forgetting.erasure_scope import ErasureScope
from wayline.store import Connection, Queries, Store


class OwnRows:
    """Erases sessions, latest results, schedules and firings, and the names in reservations."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = Queries.load(files("wayline.router.forgetting").joinpath("queries.sql"))

    async def count(self, scope: ErasureScope) -> Erased:
        """Count what there is."""
        async with self._store.tenant(scope.tenant) as conn:
            found = await conn.fetchrow(self._sql.count_own, *await self._named(conn, scope))
            assert found is not None
            budgets = await conn.fetchval(self._sql.budgets_of_user, scope.tenant, scope.user_id)
        kept = {"budgets_of_the_user": budgets} if budgets else {}
        return Erased(counts={name: count for name, count in dict(found).items() if count}, kept=kept)

    async def erase(self, scope: ErasureScope) -> None:
        """Erase it, in one transaction."""
        sql, jobs = self._sql, list(scope.job_ids)
        async with self._store.tenant(scope.tenant) as conn:
            tenant, user, _, sessions = await self._named(conn, scope)
            await conn.execute(sql.erase_results, tenant, user, jobs)
            await conn.execute(sql.erase_turns, tenant, jobs, sessions)
            for row in await conn.fetch(sql.sessions_to_erase, tenant, user, sessions):
                await conn.execute(self._store.sql.forget_session, tenant, row["session_id"])
            await conn.execute(sql.erase_unread, tenant, user, jobs)
            await conn.execute(sql.erase_extractions, tenant, user, jobs)
            await conn.execute(sql.erase_firings, tenant, user, jobs)
            await conn.execute(sql.erase_schedules, tenant, user)
            await conn.execute(sql.erase_names, tenant, user, jobs)
            # Last: it is noted only while a job has its user's name.
            await conn.execute(sql.erase_wanted_summary, tenant, user)

    async def _named(self, conn: Connection, scope: ErasureScope) -> tuple[str, str | None, list[str], list[str]]:
        """Return what statements are given; a session is erased with its user, and not with one of its jobs."""
        jobs = list(scope.job_ids)
        rows = await conn.fetch(self._sql.sessions_of_jobs, scope.tenant, jobs) if scope.with_sessions else []
        return scope.tenant, scope.user_id, jobs, [row["session_id"] for row in rows]
