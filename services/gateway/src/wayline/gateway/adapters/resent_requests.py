"""Which job a request of a client began that may send it again after an error: kept in Postgres for ten minutes."""

from __future__ import annotations

from dataclasses import dataclass

from wayline.store import Store


@dataclass(frozen=True, slots=True)
class RequestId:
    """What makes two requests the same: the key that sends them, and their address and body."""

    tenant: str
    key_id: str
    digest: str


class ResentRequests:
    """The table `resendable_requests`. Of two equal requests the newer one is what a client sends again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = store.sql

    async def note(self, request: RequestId, job_id: str) -> None:
        """Note that a request has come, and which job is its."""
        one = request
        await self._store.execute(one.tenant, self._sql.note_request, one.tenant, one.key_id, one.digest, job_id)

    async def job_of(self, request: RequestId) -> str | None:
        """Return the job of a request of the last ten minutes; None: there was none."""
        one = request
        row = await self._store.fetchrow(one.tenant, self._sql.requested_job, one.tenant, one.key_id, one.digest)
        return None if row is None else row["job_id"]

    async def came_again(self, request: RequestId, job_id: str, *, within_s: float) -> bool:
        """Return whether a request came, here or at another gateway, in the last so many seconds."""
        one = request
        row = await self._store.fetchrow(
            one.tenant, self._sql.was_asked_again, one.tenant, one.key_id, one.digest, job_id, within_s
        )
        return row is not None and row[0]
