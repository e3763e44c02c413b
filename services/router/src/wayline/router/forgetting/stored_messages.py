"""What the streams hold of jobs: logs, signals, dead letters and large fields, erased message by message.

A purge takes messages out of a stream and leaves their bytes in its files until these are written anew. To delete one
message by its sequence overwrites it at once. So nothing here is purged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import orjson
from nats.aio.msg import Msg

from wayline.chassis import Bus
from wayline.chassis.claim_check.payloads import is_missing
from wayline.chassis.connection.bus import AWAY
from wayline.contracts import headers as h
from wayline.contracts.errors import Bug, Unavailable
from wayline.contracts.forgetting import Erased
from wayline.journal import bulk_read, leader_next
from wayline.router.forgetting.erasure_scope import ErasureScope

ERASED_BESIDE = 8
"""Logs that are erased beside each other."""
ASK_TIMEOUT_S = 5.0
DEAD = "DEAD"


class StoredMessages:
    """Counts and erases messages of the streams; each part may be repeated."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def count(self, scope: ErasureScope) -> Erased:
        """Count what there is."""
        async with asyncio.TaskGroup() as group:
            beside = asyncio.Semaphore(ERASED_BESIDE)
            counted = [
                (what, group.create_task(self._held(stream, subject, beside)))
                for what, stream, subject in _subjects(scope)
            ]
        counts: dict[str, int] = {}
        for what, held in counted:
            counts[what] = counts.get(what, 0) + held.result()
        counts["dead_letters"] = len([one async for one in self._letters(scope)])
        counts["payloads"] = len(await self._bus.claims.names_of(scope.tenant, scope.job_ids))
        return Erased(counts={name: count for name, count in counts.items() if count})

    async def erase(self, scope: ErasureScope) -> None:
        """Erase it. The large fields go last: their names are found again after a crash."""
        beside = asyncio.Semaphore(ERASED_BESIDE)
        async with asyncio.TaskGroup() as group:
            for _, stream, subject in _subjects(scope):
                group.create_task(self._erase_subject(stream, subject, beside))
        for sequence in [one async for one in self._letters(scope)]:
            await self._erase(DEAD, sequence)
        await self._bus.claims.drop(await self._bus.claims.names_of(scope.tenant, scope.job_ids))

    async def _held(self, stream: str, subject: str, beside: asyncio.Semaphore) -> int:
        async with beside:
            answer = await self._ask(f"STREAM.INFO.{stream}", {"subjects_filter": subject})
            return (answer["state"].get("subjects") or {}).get(subject, 0)

    async def _erase_subject(self, stream: str, subject: str, beside: asyncio.Semaphore) -> None:
        async with beside:
            start = 1
            while stored := await leader_next(self._bus, stream, subject, start=start):
                await self._erase(stream, stored.sequence)
                start = stored.sequence + 1

    async def _erase(self, stream: str, sequence: int) -> None:
        """Overwrite one message; one that is gone is erased already."""
        await self._ask(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence, "no_erase": False}, missing_is_fine=True)

    async def _letters(self, scope: ErasureScope) -> AsyncIterator[int]:
        """Yield the sequences of dead letters that are of a user or of jobs."""
        if scope.user_id is None and not scope.job_ids:
            return
        jobs = frozenset(scope.job_ids)
        async with aclosing(bulk_read(self._bus, DEAD, f"dead.*.*.{scope.tenant}")) as letters:
            async for letter in letters:
                if _is_of(letter, jobs, scope.user_id):
                    yield int((letter.headers or {})["Nats-Sequence"])

    async def _ask(self, call: str, request: dict[str, object], *, missing_is_fine: bool = False) -> dict[str, dict]:
        try:
            reply = await self._bus.request(f"{self._bus.api}.{call}", orjson.dumps(request), timeout_s=ASK_TIMEOUT_S)
        except AWAY:
            raise Unavailable("the bus", detail=call) from None
        answer = orjson.loads(reply.data)
        error = answer.get("error")
        if error is None or (missing_is_fine and is_missing(answer)):
            return answer
        if error["code"] == 503:
            raise Unavailable("the bus", detail=call)
        raise Bug(f"{call}: {error}")


def _subjects(scope: ErasureScope) -> list[tuple[str, str, str]]:
    """Return what each job has in the streams: its kind, the stream and the subject."""
    return [
        (what, stream, f"{what_subject}.{scope.tenant}.{job_id}")
        for job_id in scope.job_ids
        for what, stream, what_subject in (
            ("log_records", "EVENTS", "events"),
            ("signals", "SIGNALS", "signals"),
            ("decisions", "SIGNALS", "approvals"),
        )
    ]


def _is_of(letter: Msg, jobs: frozenset[str], user_id: str | None) -> bool:
    """Return whether a dead letter is about one of these jobs, or of this user."""
    if (letter.headers or {}).get(h.DEAD_SUBJECT, "").rpartition(".")[2] in jobs:
        return True
    try:
        body = orjson.loads(letter.data)
    except ValueError:
        # Its end is cut off: what names it may still be there.
        names: Sequence[str] = (*jobs, *([user_id] if user_id is not None else []))
        return any(orjson.dumps(name) in letter.data for name in names)
    if not isinstance(body, dict):
        return False
    return (
        body.get("job_id") in jobs
        or body.get("job") in jobs
        or (user_id is not None and body.get("user_id") == user_id)
    )
