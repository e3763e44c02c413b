"""A job while a client waits for what becomes of it: its answer, its failure, or that a person has to decide."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing, suppress
from typing import TypeVar

from fastapi import Request

from wayline.contracts.errors import Unavailable
from wayline.contracts.events import Event, JobParked
from wayline.contracts.jobs import Delta, JobView
from wayline.gateway.errors import JobUnfinished
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.read_job import FOR_A_PERSON, read_job
from wayline.gateway.keys import Caller
from wayline.gateway.openai.job_parts import JobPart
from wayline.gateway.shapes.jobs import linked
from wayline.journal import follow

T = TypeVar("T")


def stopping() -> Unavailable:
    """Return what is said to clients that wait here while this process ends: they may send their request again."""
    return Unavailable("this gateway", detail="it is stopping")


class FollowedJob:
    """Reads a job's events until there is something to answer."""

    def __init__(self, gateway: Gateway, tenant: str, job_id: str, *, part: int = 1) -> None:
        self._gateway = gateway
        self.tenant = tenant
        self.job_id = job_id
        self.part = JobPart(part)
        """What is asked for: of a job whose client runs tools, what follows its last results."""
        self.outcome: JobView | None = None
        """Once it has ended, waits for a person, or asks its client to run tools."""

    @property
    def is_parked(self) -> bool:
        """Return whether it waits for a person."""
        return self.outcome is not None and self.outcome.waiting_for is not None and not self.part.calls

    async def news(self) -> AsyncGenerator[Event | Delta | None]:
        """Yield what happens in its part; None where nothing does for a while. `outcome` is set at the end."""
        async with aclosing(follow(self._gateway.bus, self.tenant, self.job_id)) as news:
            async for item in news:
                if isinstance(item, Event) and self.part.hear(item):
                    self.outcome = linked(self.part.view())
                    return
                if item is None or (isinstance(item, Event | Delta) and self.part.is_under_way):
                    yield item
                if isinstance(item, JobParked) and self.part.is_under_way and item.waiting.why in FOR_A_PERSON:
                    job = await read_job(self._gateway, self.tenant, self.job_id)
                    if job.waiting_for is not None and job.waiting_for.why in FOR_A_PERSON:
                        self.outcome = linked(self.part.view())
                        return
        self.outcome = linked(self.part.view())

    async def wait(self, caller: Caller, *, wait_s: float) -> JobView:
        """Return what became of it. Raises JobUnfinished after the wait, and Unavailable while this process stops."""
        with self._gateway.streams.follower(caller) as follower:
            try:
                async with asyncio.timeout(wait_s), aclosing(self.news()) as news:
                    async for _ in news:
                        pass
            except TimeoutError:
                raise JobUnfinished(job_id=self.job_id, wait_s=wait_s) from None
            except asyncio.CancelledError:
                if follower.absorb_stop():
                    raise stopping() from None
                raise
        assert self.outcome is not None
        return self.outcome


async def unless_client_leaves(request: Request, work: Awaitable[T]) -> T | None:
    """Return what work comes to; None: the client has closed the connection before, and the work was ended."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.create_task(_client_left(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, leaving):
            task.cancel()
        for task in (working, leaving):
            with suppress(asyncio.CancelledError, Exception):
                await task


async def _client_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
