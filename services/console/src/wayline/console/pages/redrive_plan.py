"""What a redrive would do, and how far the jobs are that an earlier one let go on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from wayline.client import ApiError
from wayline.client.client import TERMINAL, Client
from wayline.console.pages.live_events import HEARTBEAT, heartbeats, sse

FORKS_SHOWN = 60
"""Jobs that go on, of which the page reads how far they are."""
READ_AT_ONCE = 6
READ_ANEW_S = 5.0
"""While nothing is heard of jobs that go on: what happened before they were listened to is found so."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a redrive of one cause would do, and how far the jobs are that it let go on before."""

    jobs: list[dict[str, Any]]
    letters: list[dict[str, Any]]
    more: bool
    limit: int
    forks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Those of the jobs that go on which were read, by their ids."""

    @property
    def begins(self) -> int:
        """Return how many would begin."""
        return sum(one["outcome"] in ("forked", "resubmitted") for one in (*self.jobs, *self.letters))

    @property
    def refused(self) -> int:
        return sum(one["outcome"] == "refused" for one in (*self.jobs, *self.letters))

    @property
    def progress(self) -> list[tuple[str, int]]:
        """Return how many of the jobs that go on have each status, the most frequent first."""
        return Counter(job["status"] for job in self.forks.values()).most_common()

    @property
    def open(self) -> set[str]:
        """Return the jobs that go on and have not ended, of those that were read."""
        return {name for name, job in self.forks.items() if not job["ended_at"]}

    @property
    def not_read(self) -> int:
        """Return how many jobs go on of which the page has not read how far they are."""
        return sum(one["outcome"] == "already" for one in self.jobs) - len(self.forks)


async def read_plan(client: Client, fingerprint: str, limit: int) -> Plan:
    """Ask what a redrive would do, and how far the newest of the jobs are that go on already."""
    body = {"fingerprint": fingerprint, "dry_run": True, "limit": limit}
    try:
        found = await client.post("/v1/dead-letters/redrive", body)
    except ApiError as error:
        if error.status != 404:
            raise
        return Plan([], [], False, limit)
    wanted = [one["fork_id"] for one in found["jobs"] if one["outcome"] == "already"][:FORKS_SHOWN]
    places = asyncio.Semaphore(READ_AT_ONCE)

    async def fork(job_id: str) -> dict[str, Any] | None:
        async with places:
            return await there(client, f"/v1/jobs/{job_id}")

    forks = dict(zip(wanted, await asyncio.gather(*map(fork, wanted)), strict=True))
    return Plan(
        found["jobs"], found["letters"], found["more"], limit, {name: job for name, job in forks.items() if job}
    )


async def there(client: Client, path: str) -> dict[str, Any] | None:
    """Return what the API has at a path; None: it is gone by now."""
    try:
        return await client.get(path)
    except ApiError as error:
        if error.status != 404:
            raise
        return None


async def told_of_forks(client: Client, jobs: set[str]) -> AsyncIterator[bytes]:
    """Yield one event for each of some jobs until all have ended, and one where nothing has come for a while."""
    changed, left = sse("changed", {"type": "", "of": ""}), set(jobs)

    async def heard() -> AsyncIterator[bytes]:
        async with aclosing(client.tenant_events(types="job.*")) as events:
            async for event in events:
                if event.get("job_id") not in left:
                    continue
                yield changed
                if event["type"] in TERMINAL:
                    left.discard(event["job_id"])
                if not left:
                    return

    async with aclosing(heartbeats(heard(), READ_ANEW_S)) as pieces:
        async for piece in pieces:
            yield changed
            if piece == HEARTBEAT and not await _still_open(client, left):
                return


async def _still_open(client: Client, jobs: set[str]) -> bool:
    """Return whether one of some jobs has not ended."""
    for job_id in sorted(jobs):
        job = await there(client, f"/v1/jobs/{job_id}")
        if job is not None and not job["ended_at"]:
            return True
    return False
