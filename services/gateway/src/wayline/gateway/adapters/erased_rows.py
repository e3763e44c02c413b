"""What the gateway keeps of users and jobs, counted and erased."""

from __future__ import annotations

from wayline.contracts.forgetting import Erased, EraseFromGateway
from wayline.store import Store


class ErasedRows:
    """Erases accepted submissions, and letters that were dismissed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def erase(self, asked: EraseFromGateway) -> Erased:
        """Erase what is of a user or of jobs, and say how much it was."""
        sql, jobs = self._store.sql, list(asked.job_ids)
        async with self._store.tenant(asked.tenant) as conn:
            found = await conn.fetchrow(sql.count_submissions, asked.tenant, asked.user_id, jobs)
            assert found is not None
            keys = await conn.fetchval(sql.keys_of_user, asked.tenant, asked.user_id)
            if not asked.count_only:
                await conn.execute(sql.erase_submissions, asked.tenant, asked.user_id, jobs)
                await conn.execute(sql.erase_dismissed_letters, asked.tenant, jobs)
                await conn.execute(sql.erase_requests, asked.tenant, jobs)
                await conn.execute(sql.erase_audited_names, asked.tenant, asked.user_id)
                await conn.execute(sql.erase_actions, asked.tenant, asked.user_id, jobs)
        kept = {"api_keys_bound_to_the_user": keys} if keys else {}
        return Erased(counts={name: count for name, count in dict(found).items() if count}, kept=kept)
