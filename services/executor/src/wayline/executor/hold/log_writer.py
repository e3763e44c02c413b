"""Writes a held job's events: stamps them, folds them, and appends what belongs together as one record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from wayline.chassis import Failpoint, reach
from wayline.contracts import ids
from wayline.contracts.chat import ChatMessage
from wayline.contracts.events import Event, ModelRequested, SpanRef
from wayline.journal import Fenced, Head, Job, JobLog, evolve

E = TypeVar("E", bound=Event)
Clock = Callable[[], datetime]


def now() -> datetime:
    return datetime.now(UTC)


class Draft(NamedTuple):
    """An event that is not numbered and timed yet; it stands on the job's span unless `span` says another."""

    kind: type[Event]
    span: SpanRef | str | None
    payload: dict[str, Any]


def draft(kind: type[Event], span: SpanRef | str | None = None, **payload: Any) -> Draft:
    """Return an event to be noted."""
    return Draft(kind, span, payload)


class ClaimLost(Exception):
    """Another executor appended between our look at the log and our claim: look again."""


class LogWriter:
    """The one writer of a job while its holder holds it.

    What is noted is folded at once and appended with the next intent, end or hand-back: nothing changes the world
    before the record that says so is in, and a result shares its record with what follows from it.
    """

    def __init__(self, log: JobLog, head: Head, job: Job, *, clock: Clock = now) -> None:
        self._log = log
        self._clock = clock
        self.head = head
        self.job = job
        self._begun_before = job.model.step
        self._before_step: dict[int, int] = {}
        """The last record before each step that began here: what came of its calls is found behind it."""
        self._noted: list[Event] = []
        self._claim: dict[str, Any] = {}
        self._appending = asyncio.Lock()
        self._lost: type[Fenced | ClaimLost] | None = None
        """How the job was lost to another writer: the append that found out may have been left by its task."""
        self.signals_seen = head.signals_seen
        self._trace_id = ids.trace_id(log.tenant, log.job_id)
        self._root = SpanRef(trace_id=self._trace_id, span_id=ids.job_span(log.tenant, log.job_id))

    @property
    def claimed(self) -> bool:
        """Return whether the claim itself is in the log."""
        return not self._claim

    @property
    def may_repeat(self) -> bool:
        """Return whether an earlier holder may have begun the step under way."""
        return self.job.model.step == self._begun_before

    async def certain(self) -> bool:
        """Return whether the log is known once an append under way has ended: one that was cut may be in or not."""
        async with self._appending:
            return self.job.seq == self.head.seq + len(self._noted)

    def note(self, kind: type[E], span: SpanRef | str | None = None, **payload: Any) -> E:
        """Make an event, numbered and timed, and fold it; it stands on the job's span unless `span` says another."""
        event = kind(
            job_id=self._log.job_id,
            seq=self.job.seq + 1,
            at=self._clock(),
            trace=SpanRef(trace_id=self._trace_id, span_id=span) if isinstance(span, str) else span or self._root,
            **payload,
        )
        self.job = evolve(self.job, event)
        self._noted.append(event)
        return event

    def note_all(self, drafts: Iterable[Draft]) -> None:
        """Note what an action came to; each draft is made once those before it are folded."""
        for kind, span, payload in drafts:
            self.note(kind, span, **payload)

    def hold_history(self, history: tuple[ChatMessage, ...]) -> None:
        """Hold what was said in the session before the job: no event says it again."""
        self.job = self.job._replace(conversation=self.job.conversation._replace(history=history))

    def claim(self, *, owner: str, attempt: int, epoch: int) -> None:
        """Write the next record as a new holder."""
        self._claim = {"owner": owner, "attempt": attempt, "epoch": epoch}

    async def records_since(self, step: int) -> list[list[dict[str, Any]]]:
        """Read the records that may hold what came of a step's calls, as decoded JSON."""
        return await self._log.records(self.head.sequence, after=self._before_step.get(step, 0))

    async def append(self, before: Failpoint, after: Failpoint) -> None:
        """Append everything noted as one record.

        Raises Fenced when the job has moved on without us, ClaimLost when it had done so before it was ever ours.
        """
        async with self._appending:
            if self._lost is not None:
                raise self._lost
            if not self._noted:
                return
            if self._claim:
                before, after = Failpoint.EXECUTOR_CLAIM_BEFORE, Failpoint.EXECUTOR_CLAIM_AFTER
            reach(before)
            # A signal may be noted while this record is on its way: it belongs to the next one.
            noted, self._noted = self._noted, []
            before_it = self.head.sequence
            try:
                self.head = await self._log.append(
                    noted, self.head, signals_seen=self.signals_seen, cost=self.job.money.cost_usd, **self._claim
                )
            except Fenced:
                self._lost = Fenced if self.claimed else ClaimLost
                if self.claimed:
                    raise
                raise ClaimLost from None
            self._claim = {}
            for event in noted:
                if isinstance(event, ModelRequested):
                    self._before_step.setdefault(event.step, before_it)
            reach(after)
