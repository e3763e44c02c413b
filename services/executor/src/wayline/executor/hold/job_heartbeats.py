"""The heartbeats of all jobs that a lane holds, on one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

LOOKS_MAX = 16
"""Logs looked at beside each other: a thousand jobs that were claimed together are due together."""


class BeatingJob(Protocol):
    """A held job, as its heartbeat sees it."""

    async def keep(self) -> None:
        """Say that the ticket is still being worked on."""
        ...

    async def look(self) -> None:
        """Check that the job is still ours."""
        ...


class Heartbeats:
    """Has each of its jobs beat once a period, counted from when it was taken in.

    Between its beats a job costs an entry here and nothing else; most jobs end before the first.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._due: dict[BeatingJob, float] = {}
        """When each beats next; with one period for all, the first in is the first due."""
        self._unseen: dict[BeatingJob, None] = {}
        self._looking = 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, job: BeatingJob) -> None:
        """Have a job beat from now on."""
        loop = asyncio.get_running_loop()
        self._due[job] = loop.time() + self._period_s
        if self._timer is None:
            self._timer = loop.call_later(self._period_s, self._pulse)

    def release(self, job: BeatingJob) -> None:
        """Let a job go."""
        self._due.pop(job, None)
        self._unseen.pop(job, None)

    def _pulse(self) -> None:
        loop = asyncio.get_running_loop()
        due = self._take_due(loop.time())
        self._timer = loop.call_at(next(iter(self._due.values())), self._pulse) if self._due else None
        if due:
            # Told for all before anything is looked at: a look may wait for a leader that is away.
            self._begin(self._keep(due))
        while self._looking < min(LOOKS_MAX, len(self._unseen)):
            self._looking += 1
            self._begin(self._look())

    def _take_due(self, now: float) -> list[BeatingJob]:
        due = []
        for job, at in self._due.items():
            if at > now:
                break
            due.append(job)
        for job in due:
            del self._due[job]
            self._due[job] = now + self._period_s
            self._unseen[job] = None
        return due

    def _begin(self, doing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(self, due: list[BeatingJob]) -> None:
        for job in due:
            if job in self._due:
                await job.keep()

    async def _look(self) -> None:
        try:
            while self._unseen:
                job = next(iter(self._unseen))
                del self._unseen[job]
                await job.look()
        finally:
            self._looking -= 1
