"""Jobs over the bus: submit one, follow its events, await its result."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from faststream.nats import NatsBroker
from nats import errors as nats_errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.errors import Problem, Unavailable, WaylineError, raised
from wayline.contracts.events import TERMINAL_TYPES
from wayline.contracts.job_events import EventPage, ReadEvents
from wayline.contracts.jobs import JobResult, JobView, SubmitJob

ACK_WITHIN_S = 5.0
LOOK_AGAIN_S = 5.0
"""After so long without news of a job its log is read again: what was lost on the way must not end in silence."""


class Jobs:
    """The jobs of one tenant; the credential needs the scopes `submit` and, to follow, `follow`."""

    def __init__(self, broker: NatsBroker, *, tenant: str | None = None) -> None:
        self._broker = broker
        self._tenant = tenant or os.environ.get("WAYLINE_TENANT") or "default"

    async def submit(self, agent: str, text: Any, *, job_id: str | None = None, **options: Any) -> str:
        """Submit a job and return its id once the bus has stored it; the same id again is the same job."""
        return await self._submit(agent, text, job_id or ids.new_id("job"), options, {})

    async def run(
        self, agent: str, text: Any, *, job_id: str | None = None, timeout_s: float = 300.0, **options: Any
    ) -> JobView:
        """Submit a job and return it finished. Raises TimeoutError; the job goes on then."""
        nc = await self._broker.connect()
        inbox = nc.new_inbox()
        answers = await nc.subscribe(inbox, max_msgs=1)
        try:
            await self._submit(agent, text, job_id or ids.new_id("job"), options, {h.REPLY_TO: inbox})
            async with asyncio.timeout(timeout_s):
                answer = await answers.next_msg(timeout=timeout_s)
        finally:
            await answers.unsubscribe()
        if h.ERROR in (answer.headers or {}):
            raise raised(Problem.model_validate_json(answer.data))
        return JobResult.model_validate_json(answer.data, extra="ignore").job

    async def follow(self, job_id: str, *, after_seq: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of a job after a number, from its first, each once and in order, until its end.

        Those that are in its log come first, so that a job which has ended is told from its beginning. A job that has
        no log yet is waited for. While nobody reads the log for us, only what happens from now on is told.
        """
        nc = await self._broker.connect()
        live = await nc.subscribe(self._live(job_id))
        place = _Place(told=after_seq)
        try:
            while not place.ended:
                async for page in self._pages(job_id, place):
                    for event in place.read(page):
                        yield event
                async for record in _in_line(live, place):
                    for event in place.hear(record):
                        yield event
        finally:
            await live.unsubscribe()

    def _live(self, job_id: str) -> str:
        return f"live.{self._tenant}.{job_id}"

    async def _pages(self, job_id: str, place: _Place) -> AsyncIterator[EventPage]:
        """Yield what the log has beyond a place; nothing where nobody answers."""
        while not place.ended:
            try:
                page = await self._ask(ReadEvents(tenant=self._tenant, job_id=job_id, after=place.sequence))
            except (WaylineError, nats_errors.Error, TimeoutError):
                place.blind = True
                return
            place.blind = False
            yield page
            if not page.more:
                return

    async def _ask(self, request: ReadEvents) -> EventPage:
        nc = await self._broker.connect()
        headers = {h.SCHEMA: request.schema_id(), h.TENANT: self._tenant}
        answer = await nc.request(request.subject, request.to_wire(), timeout=ACK_WITHIN_S, headers=headers)
        if h.ERROR in (answer.headers or {}):
            raise raised(Problem.model_validate_json(answer.data))
        return EventPage.model_validate_json(answer.data, extra="ignore")

    async def _submit(
        self, agent: str, text: Any, job_id: str, options: dict[str, Any], headers: dict[str, str]
    ) -> str:
        job = SubmitJob.model_validate(
            {"tenant": self._tenant, "agent": agent, "input": text, "job_id": job_id, "options": options}
        )
        nc = await self._broker.connect()
        wire = {h.SCHEMA: job.schema_id(), h.TENANT: self._tenant, **headers}
        # The job's trace is its own, with a link to the span that we are in.
        TraceContextTextMapPropagator().inject(wire)
        ack = json.loads((await nc.request(job.subject, job.to_wire(), timeout=ACK_WITHIN_S, headers=wire)).data)
        if "error" in ack:
            raise Unavailable("the bus", detail=ack["error"].get("description", ""))
        return job_id


@dataclass
class _Place:
    """How far a follower is in a job's log."""

    told: int
    """The number of the last event that it was told."""
    sequence: int = 0
    """The place in the stream of the last record that it knows."""
    ended: bool = False
    blind: bool = False
    """Whether nobody can say what was missed."""

    def read(self, page: EventPage) -> list[dict[str, Any]]:
        """Return what a page says that was not told before."""
        self.sequence = max(self.sequence, page.after)
        return self._new(page.events)

    def follows(self, record: Msg) -> bool:
        """Return whether nothing was missed between what is known and a record that has just been written."""
        return self.blind or int((record.headers or {}).get("Nats-Last-Sequence", 0)) <= self.sequence

    def hear(self, record: Msg) -> list[dict[str, Any]]:
        """Return what a record says that was not told before; what is no record of ours says nothing."""
        headers = record.headers or {}
        self.sequence = max(self.sequence, int(headers.get("Nats-Sequence", 0)))
        return self._new(json.loads(record.data)["events"]) if h.RECORD in headers else []

    def _new(self, events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        new = [event for event in events if event["seq"] > self.told]
        self.told = max([self.told, *(event["seq"] for event in new)])
        self.ended = self.ended or any(event["type"] in TERMINAL_TYPES for event in events)
        return new


async def _in_line(live: Subscription, place: _Place) -> AsyncIterator[Msg]:
    """Yield records as they are written, until one was missed, or nothing has come for long."""
    while not place.ended:
        try:
            record = await live.next_msg(timeout=LOOK_AGAIN_S)
        except nats_errors.TimeoutError:
            return
        if not place.follows(record):
            return
        yield record
