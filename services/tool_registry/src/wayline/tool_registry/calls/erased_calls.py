"""Erases what the registry keeps of users and jobs: calls with their results, and logins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from wayline.contracts.forgetting import Erased, EraseFromRegistry
from wayline.contracts.server_logins import ForgetUser
from wayline.store import Store


class ErasedCalls:
    """Counts and erases rows; a user's tokens are revoked where their server can do that."""

    def __init__(self, store: Store, forget_user: Callable[[ForgetUser], Awaitable[object]]) -> None:
        self._store = store
        self._forget_user = forget_user

    async def erase(self, asked: EraseFromRegistry) -> Erased:
        """Erase what is of a user or of jobs, and say how much it was."""
        sql, jobs = self._store.sql, list(asked.job_ids)
        found = await self._store.fetchrow(asked.tenant, sql.count_erasable, asked.tenant, asked.user_id, jobs)
        assert found is not None
        if not asked.count_only:
            await self._store.execute(asked.tenant, sql.erase_calls, asked.tenant, jobs)
            if asked.user_id is not None and (found["authorizations"] or found["logins"]):
                await self._forget_user(ForgetUser(tenant=asked.tenant, user_id=asked.user_id))
        return Erased(counts={name: count for name, count in dict(found).items() if count})
