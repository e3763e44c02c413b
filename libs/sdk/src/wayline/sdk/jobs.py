"""Jobs over the bus: submit one, follow its events, await its result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from faststream.nats import NatsBroker
from nats import errors as nats_errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pydantic import ValidationError

from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.base import explain
from wayline.contracts.errors import InvalidMessage, Problem, Unavailable, WaylineError, raised
from wayline.contracts.job_events import EventPage, ReadEvents
from wayline.contracts.jobs import JobView, SubmitJob
from wayline.sdk.connection import chosen_tenant
from wayline.sdk.followed_job import FollowedJob, view_of
from wayline.sdk.log_position import LogPosition

ACK_WITHIN_S = 5.0
ANSWER_AFTER_END_S = 2.0
"""How long the answer to a submission is awaited once its job has ended: it says more than the log's last event."""
LOOK_AGAIN_S = 5.0
"""After so long without news of a job its log is read again: what was lost on the way must not end in silence."""


class Jobs:
    """The jobs of one tenant; the credential needs the scopes `submit` and, to follow, `follow`."""

    def __init__(self, broker: NatsBroker, *, tenant: str | None = None) -> None:
        self._broker = broker
        self._tenant = chosen_tenant(tenant)

    async def submit(
        self,
        agent: str,
        text: Any,
        *,
        job_id: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        **options: Any,
    ) -> str:
        """Submit a job and return its id once the bus has stored it; the same id again is the same job.

        Raises InvalidMessage for what no job can be, and Unavailable where the bus has not said that it stored the job.
        """
        job = self._job(agent, text, options, job_id=job_id, user_id=user_id, session_id=session_id)
        return await self._submit(job, {})

    async def run(
        self,
        agent: str,
        text: Any,
        *,
        job_id: str | None = None,
        timeout_s: float = 300.0,
        user_id: str | None = None,
        session_id: str | None = None,
        **options: Any,
    ) -> JobView:
        """Submit a job and return it finished; the same id again awaits the same job.

        Raises JobTimeout, or JobWaits where the job waits for a person by then, and goes on in both cases; Conflict
        where the id is that of another job, Refused where it cannot be taken, and what `submit` raises.
        """
        job = self._job(agent, text, options, job_id=job_id, user_id=user_id, session_id=session_id)
        followed = FollowedJob(job)
        nc = await self._broker.connect()
        inbox = nc.new_inbox()
        answers = await nc.subscribe(inbox, max_msgs=1)
        try:
            await self._submit(job, {h.REPLY_TO: inbox})
            async with asyncio.timeout(timeout_s):
                return await self._end(followed, answers)
        except TimeoutError:
            raise followed.overdue(timeout_s) from None
        finally:
            await answers.unsubscribe()

    async def follow(self, job_id: str, *, after_seq: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of a job after a number, from its first, each once and in order, until its end.

        Those that are in its log come first, so that a job which has ended is told from its beginning. A job that has
        no log yet is waited for. While nobody reads the log for us, only what happens from now on is told.
        """
        nc = await self._broker.connect()
        live = await nc.subscribe(self._live(job_id))
        position = LogPosition(last_seq=after_seq)
        try:
            while not position.ended:
                async for page in self._pages(job_id, position):
                    for event in position.read_page(page):
                        yield event
                async for record in _live_records(live, position):
                    for event in position.read_record(record):
                        yield event
        finally:
            await live.unsubscribe()

    def _live(self, job_id: str) -> str:
        return f"live.{self._tenant}.{job_id}"

    async def _pages(self, job_id: str, position: LogPosition) -> AsyncIterator[EventPage]:
        """Yield what the log has beyond a position; nothing where tracing does not answer."""
        while not position.ended:
            try:
                page = await self._ask(ReadEvents(tenant=self._tenant, job_id=job_id, after=position.sequence))
            except (WaylineError, nats_errors.Error, TimeoutError):
                position.log_unreadable = True
                return
            position.log_unreadable = False
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

    async def _end(self, followed: FollowedJob, answers: Subscription) -> JobView:
        """Await the answer to a submission, or the end of its job's log: a repeated submission is not answered."""
        answer = asyncio.create_task(answers.next_msg(timeout=None))
        following = asyncio.create_task(self._note_events(followed))
        try:
            await asyncio.wait({answer, following}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                following.result()
                await asyncio.wait({answer}, timeout=ANSWER_AFTER_END_S)
            return _answered(answer.result()) if answer.done() else followed.view()
        finally:
            for task in (answer, following):
                task.cancel()
            await asyncio.gather(answer, following, return_exceptions=True)

    async def _note_events(self, followed: FollowedJob) -> None:
        async for event in self.follow(followed.job_id):
            followed.add(event)

    def _job(self, agent: str, text: Any, options: dict[str, Any], **more: str | None) -> SubmitJob:
        """Return a submission with an id. Raises InvalidMessage."""
        more["job_id"] = more.get("job_id") or ids.new_id("job")
        body = {"tenant": self._tenant, "agent": agent, "input": text, "options": options}
        given = {name: value for name, value in more.items() if value is not None}
        try:
            return SubmitJob.model_validate({**body, **given})
        except ValidationError as error:
            raise InvalidMessage(schema=SubmitJob.schema_id(), reason=explain(error)) from None

    async def _submit(self, job: SubmitJob, headers: dict[str, str]) -> str:
        assert job.job_id is not None
        nc = await self._broker.connect()
        wire = {h.SCHEMA: job.schema_id(), h.TENANT: self._tenant, **headers}
        # The job's trace is its own, with a link to the span that we are in.
        TraceContextTextMapPropagator().inject(wire)
        try:
            answer = await nc.request(job.subject, job.to_wire(), timeout=ACK_WITHIN_S, headers=wire)
        except (nats_errors.Error, TimeoutError) as error:
            why = f"{error or type(error).__name__}; whether it stored the job {job.job_id} is not known: submit it"
            raise Unavailable("the bus", detail=f"{why} under this job_id") from None
        ack = json.loads(answer.data)
        if "error" in ack:
            raise Unavailable("the bus", detail=ack["error"].get("description", ""))
        return job.job_id


def _answered(message: Msg) -> JobView:
    """Read the answer to a submission. Raises Refused, or a Retry."""
    if h.ERROR in (message.headers or {}):
        raise raised(Problem.model_validate_json(message.data))
    return view_of(json.loads(message.data)["job"])


async def _live_records(live: Subscription, position: LogPosition) -> AsyncIterator[Msg]:
    """Yield records as they are written, until one was missed, or nothing has come for long."""
    while not position.ended:
        try:
            record = await live.next_msg(timeout=LOOK_AGAIN_S)
        except nats_errors.TimeoutError:
            return
        if not position.follows(record):
            return
        yield record
