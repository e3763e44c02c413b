"""The client: publishes jobs, waits for each result on its reply subject, and keeps the latencies."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import nats
import orjson
from nats.aio.client import Client as NATS
from nats.aio.msg import Msg

from . import floor
from .bench_platform import AGENT

TASK = "Tell me the time twice, please."
OURS, FLOOR = "ours", "floor"
ENGINES = (FLOOR, OURS)
RESULT_WITHIN_S = 60.0
USUAL = "2x1"
"""Two steps with one tool call each, then the answer."""


@dataclass(frozen=True)
class Work:
    """What is asked of a job, and of which agent."""

    agent: str = AGENT
    text: str = TASK
    in_session: bool = False
    """Those that follow each other are the turns of one session."""


USUAL_WORK = Work()


@dataclass
class Load:
    """What became of the jobs of one phase."""

    seconds: float = 0.0
    done_at: list[float] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    published: dict[str, datetime] = field(default_factory=dict)
    """When each job was sent, by its id."""

    def percentile(self, share: float) -> float:
        return percentile(self.latencies_ms, share)

    def rate(self, ramp_s: float) -> float:
        """Jobs a second, without the first moment, in which everything only begins."""
        return sum(at > ramp_s for at in self.done_at if at <= self.seconds) / (self.seconds - ramp_s)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Client:
    """One connection that submits to either engine."""

    _numbers = itertools.count()

    def __init__(self, nc: NATS) -> None:
        self._nc = nc
        self._js = nc.jetstream()
        self._inbox = nc.new_inbox()
        self._waiting: dict[str, asyncio.Future[bytes]] = {}
        self._run = f"b{time.time_ns():x}"

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str) -> AsyncIterator[Client]:
        client = cls(await nats.connect(url))
        await client._nc.subscribe(f"{client._inbox}.*", cb=client._on_result)
        try:
            yield client
        finally:
            await client._nc.close()

    async def _on_result(self, message: Msg) -> None:
        waiter = self._waiting.pop(message.subject.rpartition(".")[2], None)
        if waiter and not waiter.done():
            waiter.set_result(message.data)

    async def submit(
        self, engine: str, *, model_ms: int, plan: str = USUAL, work: Work = USUAL_WORK, session: str | None = None
    ) -> tuple[str, asyncio.Future[bytes]]:
        """Have a job accepted; its result will come."""
        job_id, model = f"{self._run}-{next(self._numbers)}", f"bench-{model_ms}-{plan}"
        body: dict[str, Any] = {"input": work.text, "job_id": job_id}
        if engine == FLOOR:
            subject, body = floor.SUBMIT, body | {"model": model}
        else:
            body |= {"agent": work.agent, "options": {"model": f"chat/{model}"}, "session_id": session}
            subject = "jobs.submit.default"
        waiter = self._waiting[job_id] = asyncio.get_running_loop().create_future()
        await self._js.publish(subject, orjson.dumps(body), headers={"Wayline-Reply-To": f"{self._inbox}.{job_id}"})
        return job_id, waiter

    async def job(
        self,
        engine: str,
        *,
        model_ms: int = 0,
        plan: str = USUAL,
        work: Work = USUAL_WORK,
        session: str | None = None,
    ) -> str:
        job_id, waiter = await self.submit(engine, model_ms=model_ms, plan=plan, work=work, session=session)
        result = orjson.loads(await asyncio.wait_for(waiter, RESULT_WITHIN_S))
        if not result.get("job", result).get("answer"):
            raise SystemExit(f"{engine}: job {job_id} has no answer: {result}")
        return job_id

    async def keep(
        self,
        engine: str,
        in_flight: int,
        *,
        seconds: float,
        model_ms: int = 0,
        plan: str = USUAL,
        work: Work = USUAL_WORK,
    ) -> Load:
        """Keep so many jobs in flight for a time, and wait for the last one."""
        load, started = Load(seconds=seconds), time.perf_counter()

        async def one_after_another() -> None:
            session = f"{self._run}-s{next(self._numbers)}" if work.in_session else None
            while (began := time.perf_counter()) - started < seconds:
                published = datetime.now(UTC)
                job_id = await self.job(engine, model_ms=model_ms, plan=plan, work=work, session=session)
                load.published[job_id] = published
                ended = time.perf_counter()
                load.latencies_ms.append((ended - began) * 1_000)
                load.done_at.append(ended - started)

        async with asyncio.TaskGroup() as group:
            for _ in range(in_flight):
                group.create_task(one_after_another())
        return load
