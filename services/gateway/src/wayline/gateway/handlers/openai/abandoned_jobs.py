"""Jobs whose clients have closed the connection: cancelled, unless the client comes back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import structlog
from fastapi import Depends, Request

from wayline.contracts.errors import WaylineError
from wayline.contracts.jobs import Cancel, JobView, Signal
from wayline.gateway.handlers.openai.begin_job import CLIENT_LEFT, Begun
from wayline.gateway.handlers.openai.followed_job import FollowedJob, unless_client_leaves
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.keys import Caller
from wayline.store import PostgresUnavailable

log = structlog.get_logger()


class AbandonedJobs:
    """Knows which jobs clients wait for here. A process that ends cancels none: its clients come to another one."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._waiting: Counter[tuple[str, str]] = Counter()
        self._leaving: set[asyncio.Task[Any]] = set()

    @contextmanager
    def waiting(self, caller: Caller, begun: Begun) -> Iterator[WaitingClient]:
        """Count a client that waits for a job; where it leaves before the end, the job is cancelled a while later."""
        job = (caller.tenant, begun.job_id)
        self._waiting[job] += 1
        waiting = WaitingClient()
        try:
            yield waiting
        finally:
            self._waiting[job] -= 1
            if not self._waiting[job]:
                del self._waiting[job]
            settings = self._gateway.settings
            if not waiting.served and settings.openai_cancels_abandoned and not self._gateway.streams.closing:
                task = asyncio.create_task(self._cancel(caller, begun), name=f"abandoned {begun.job_id}")
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)

    async def outcome(self, request: Request, caller: Caller, begun: Begun, followed: FollowedJob) -> JobView | None:
        """Return what became of a job; None: its client has left. Raises what `FollowedJob.wait` raises."""
        with self.waiting(caller, begun) as waiting:
            try:
                working = followed.wait(caller, wait_s=self._gateway.settings.openai_wait_max_s)
                job = await unless_client_leaves(request, working)
            except Exception:
                # It is told to come back.
                waiting.served = True
                raise
            waiting.served = job is not None
        return job

    async def _cancel(self, caller: Caller, begun: Begun) -> None:
        gateway, tenant, job_id = self._gateway, caller.tenant, begun.job_id
        grace_s = gateway.settings.openai_abandoned_after_s
        await asyncio.sleep(grace_s)
        try:
            if self._waiting[tenant, job_id] or gateway.streams.closing:
                return
            sent = begun.request
            if sent is not None and await gateway.resent_requests.came_again(sent, job_id, within_s=grace_s):
                return
            cancel = Cancel(reason=CLIENT_LEFT, by=caller.name)
            await gateway.signals.send(Signal(tenant=tenant, job_id=job_id, signal=cancel))
        except (WaylineError, PostgresUnavailable) as error:
            log.warning("an abandoned job goes on", job_id=job_id, error=str(error))


class WaitingClient:
    """A client that waits for a job."""

    def __init__(self) -> None:
        self.served = False
        """It was told all that there was to tell, or that it has to come back."""


async def the_abandoned_jobs(request: Request) -> AbandonedJobs:
    """Return those of the application that serves a request."""
    return request.app.state.abandoned_jobs


AbandonedJobsDependency = Annotated[AbandonedJobs, Depends(the_abandoned_jobs)]
