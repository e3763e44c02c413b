"""Finished jobs for the followers of a tenant: handed out until they are done, or put aside with the reason."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

import orjson

from wayline.chassis import Delivery
from wayline.contracts.errors import Reject
from wayline.contracts.finished_jobs import ANSWER_MAX_CHARS, FinishedBatch, FinishedJob, TakeFinished
from wayline.store import Connection, Store

FOLLOWERS_MAX = 50
"""Of one tenant: each keeps a row for every job that ends."""
RETRY_FIRST_S = 1.0
RETRY_MAX_S = 600.0
ASIDE_MAX = 50
"""Jobs that one request puts aside."""
STREAM = "FINISHED"
"""What a dead letter of a finished job says in place of the stream."""
UNHEARD = "no process of the follower said what became of it"


class PutAside(Protocol):
    def __call__(self, delivery: Delivery, *, code: str, reason: str) -> Awaitable[None]: ...


class Followers:
    """Hands finished jobs out; any replica answers any request."""

    def __init__(self, store: Store, put_aside: PutAside) -> None:
        self._store = store
        self._put_aside = put_aside

    async def take(self, ask: TakeFinished) -> FinishedBatch:
        """Note what became of jobs, and return those that are due. Raises Reject where there are too many followers."""
        sql, who = self._store.sql, (ask.tenant, ask.follower)
        async with self._store.tenant(ask.tenant) as conn:
            await self._see(conn, ask)
            if ask.done:
                await conn.execute(sql.end_deliveries, *who, list(ask.done))
            if ask.failed:
                reasons = {one.job_id: one.reason for one in ask.failed}
                failed = (list(reasons), list(reasons.values()))
                await conn.execute(sql.fail_deliveries, *who, *failed, RETRY_FIRST_S, RETRY_MAX_S)
            await self._give_up(conn, ask)
            # Of a job whose row is gone nothing could be told.
            rows = await conn.fetch(
                sql.take_deliveries, *who, ask.deliveries_max, ask.limit, ask.ack_wait_s, ANSWER_MAX_CHARS
            )
        return FinishedBatch(jobs=tuple(FinishedJob.model_validate(dict(row)) for row in rows))

    async def _see(self, conn: Connection, ask: TakeFinished) -> None:
        sql, who = self._store.sql, (ask.tenant, ask.follower)
        if await conn.fetchval(sql.see_follower, *who) is not None:
            return
        if await conn.fetchval(sql.count_followers, ask.tenant) >= FOLLOWERS_MAX:
            raise Reject(f"{FOLLOWERS_MAX} followers are known already, the most there may be", code="too_many")
        await conn.execute(sql.add_follower, *who)

    async def _give_up(self, conn: Connection, ask: TakeFinished) -> None:
        """Put aside what was handed out too often. The letter comes first: a job is never lost between the two."""
        sql, who = self._store.sql, (ask.tenant, ask.follower)
        used_up = await conn.fetch(sql.used_up_deliveries, *who, ask.deliveries_max, ASIDE_MAX)
        for row in used_up:
            letter = Delivery(
                stream=STREAM,
                consumer=ask.follower,
                sequence=row["id"],
                deliveries=row["deliveries"],
                subject=ask.subject,
                body=orjson.dumps({"job_id": row["job_id"]}),
            )
            await self._put_aside(letter, code="undeliverable", reason=row["reason"] or UNHEARD)
        if used_up:
            await conn.execute(sql.put_deliveries_aside, *who, [row["job_id"] for row in used_up])
