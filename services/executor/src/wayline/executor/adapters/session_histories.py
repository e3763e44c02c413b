"""The histories of sessions, read from the logs of their jobs and kept at hand while there is room."""

from __future__ import annotations

from typing import Any, NamedTuple

import structlog

from wayline.chassis import Bus
from wayline.contracts.chat import ChatMessage
from wayline.contracts.events import HistoryEnd
from wayline.executor.decide.session_history import carried, continues
from wayline.executor.prompt.builtin_tools import WholeResult, ended_call, whole_result
from wayline.journal import (
    CHAIN_MAX,
    HistoryLost,
    Job,
    JobLog,
    State,
    as_sent,
    bounded,
    folded,
    handed_on,
    history_bytes,
    read_history,
    with_history,
)

log = structlog.get_logger()


class NotEnded(Exception):
    """One of the jobs before in a session has not ended."""


Key = tuple[str, str, int, bool]


class Continuation(NamedTuple):
    """What a job goes on with when it is claimed."""

    pinned: dict[str, Any] | None
    """The fields of a `SessionContinued` to note; None: the log has one that holds."""
    history: tuple[ChatMessage, ...] = ()
    handed_to: str | None = None
    """The job that has said its words: it goes on with nothing."""


class SessionHistories:
    """Finds what a job's prompts begin with. A history is the same for every reader: it is pinned by its hash."""

    def __init__(self, bus: Bus, *, kept_max_bytes: int) -> None:
        self._bus = bus
        self._kept_max_bytes = kept_max_bytes
        self._kept: dict[Key, tuple[tuple[ChatMessage, ...], int]] = {}
        self._bytes = 0

    async def past(self, job: Job) -> Continuation | None:
        """Return what a claimed job goes on with; None: nothing, or its turn has not come. Raises Retry."""
        turn, continued = job.session.turn, job.session.continued
        if continued is None:
            if turn is None or turn.after is None:
                return None
            # A holder that knew no histories has begun without one.
            return await self._before_first(job, turn.after) if job.model.asked is None else None
        end = job.session.history_end
        if end is None:
            return None
        try:
            history = await self._read(job.tenant, end)
        except HistoryLost as error:
            return Continuation({"lost": str(error), **carried(job)})
        return Continuation(None, as_sent(history, is_unbound=continued.unbound))

    async def turn_has_come(self, tenant: str, after: str) -> bool:
        """Return whether every job of a session up to `after` has ended, as far as their logs are there."""
        try:
            await self._last_speaker(tenant, after)
        except NotEnded:
            return False
        except HistoryLost:
            return True
        return True

    async def result(self, job: Job, of: str, step: int, call: str) -> WholeResult | None:
        """Return the whole result of a tool call of an earlier job; None: it is in no job of this history.

        Only the jobs of the history are read: a model must not read another conversation by naming a job of it.
        """
        end = job.session.history_end
        for _ in range(CHAIN_MAX):
            if end is None:
                return None
            jobs = JobLog(self._bus, job.tenant, end.job_id)
            head = await jobs.last()
            if head is None:
                return None
            if end.job_id == of:
                event = ended_call(await jobs.records(head.sequence), step, call)
                return None if event is None else whole_result(await folded(jobs, head), event)
            end = (await folded(jobs, head)).session.history_end
        return None

    def remember(self, job: Job) -> None:
        """Keep what a job that has just ended hands on: the next one is often claimed here, too."""
        if job.session.turn is not None and job.model.asked is not None:
            messages = handed_on(job)
            end = job.session.continued.after if job.session.continued else None
            self._keep((job.tenant, job.job_id, job.seq, True), messages, instead_of=end)

    async def _before_first(self, job: Job, after: str) -> Continuation | None:
        """Return what a job begins with; one whose words were said elsewhere does not begin."""
        into = job.session.into
        if job.session.handed_to is not None:
            return None
        if into is not None and job.job_id in (await self._steered_by(job.tenant, into)):
            return Continuation(None, handed_to=into)
        return await self._first(job, after)

    async def _steered_by(self, tenant: str, job_id: str) -> tuple[str, ...]:
        """Return the jobs whose words another one has said by now; its log says it, and once it has ended for good."""
        jobs = JobLog(self._bus, tenant, job_id)
        head = await jobs.last()
        return () if head is None else (await folded(jobs, head)).session.steered_by

    async def _first(self, job: Job, after: str) -> Continuation | None:
        tail: Job | None = None
        try:
            tail = await self._last_speaker(job.tenant, after)
            if tail is None:
                return Continuation({})
            history = await self._handed_on(tail)
        except NotEnded:
            return None
        except HistoryLost as error:
            return Continuation({"lost": str(error), **(carried(tail) if tail is not None else {})})
        pinned = continues(job, tail, history)
        return Continuation(pinned, as_sent(history, is_unbound=pinned["unbound"]))

    async def _last_speaker(self, tenant: str, after: str) -> Job | None:
        """Return the last job before that called a model; None: none did. Raises NotEnded and HistoryLost."""
        job_id: str | None = after
        for _ in range(CHAIN_MAX):
            if job_id is None:
                return None
            jobs = JobLog(self._bus, tenant, job_id)
            head = await jobs.last()
            if head is None:
                raise HistoryLost(f"the log of job {job_id} is gone")
            if head.state is not State.ENDED:
                raise NotEnded
            job = await folded(jobs, head)
            if job.model.asked is not None:
                return job
            job_id = job.session.turn.after if job.session.turn else None
        raise HistoryLost(f"none of the last {CHAIN_MAX} jobs said anything")

    async def _handed_on(self, tail: Job) -> tuple[ChatMessage, ...]:
        """Return what an ended job hands on, its own history included."""
        key = (tail.tenant, tail.job_id, tail.seq, True)
        kept = self._recall(key)
        if kept is not None:
            return kept
        end, continued = tail.session.history_end, tail.session.continued
        if end is not None and continued is not None:
            tail = with_history(tail, await self._read(tail.tenant, end), is_unbound=continued.unbound)
        messages = bounded(handed_on(tail))
        self._keep(key, messages, instead_of=end)
        return messages

    async def _read(self, tenant: str, end: HistoryEnd) -> tuple[ChatMessage, ...]:
        """Return a pinned history. Raises HistoryLost where it cannot be read, or is another one."""
        messages = await read_history(self._bus, tenant, end, kept=lambda at: self._recall(_key(tenant, at)))
        self._keep(_key(tenant, end), messages)
        return messages

    def _recall(self, key: Key) -> tuple[ChatMessage, ...] | None:
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        self._kept[key] = kept
        return kept[0]

    def _keep(self, key: Key, messages: tuple[ChatMessage, ...], *, instead_of: HistoryEnd | None = None) -> None:
        """Keep a history, in the place of the shorter one that it goes on from."""
        size = history_bytes(messages)
        for old in (key, _key(key[0], instead_of) if instead_of else key):
            self._bytes -= self._kept.pop(old, ((), 0))[1]
        self._kept[key] = messages, size
        self._bytes += size
        while self._bytes > self._kept_max_bytes:
            self._bytes -= self._kept.pop(next(iter(self._kept)))[1]


def _key(tenant: str, end: HistoryEnd) -> Key:
    return tenant, end.job_id, end.seq, end.without_refused
