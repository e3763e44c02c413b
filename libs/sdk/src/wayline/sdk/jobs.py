"""Jobs over the bus: submit one, follow its events, await its result."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

from faststream.nats import NatsBroker

from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.errors import Problem, Unavailable, raised
from wayline.contracts.events import TERMINAL_TYPES
from wayline.contracts.jobs import JobResult, JobView, SubmitJob

ACK_WITHIN_S = 5.0


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

    async def follow(self, job_id: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of a job from now on, until its end."""
        nc = await self._broker.connect()
        records = await nc.subscribe(f"live.{self._tenant}.{job_id}")
        try:
            async for record in records.messages:
                for event in json.loads(record.data)["events"]:
                    yield event
                    if event["type"] in TERMINAL_TYPES:
                        return
        finally:
            await records.unsubscribe()

    async def _submit(
        self, agent: str, text: Any, job_id: str, options: dict[str, Any], headers: dict[str, str]
    ) -> str:
        job = SubmitJob.model_validate(
            {"tenant": self._tenant, "agent": agent, "input": text, "job_id": job_id, "options": options}
        )
        nc = await self._broker.connect()
        wire = {h.SCHEMA: job.schema_id(), h.TENANT: self._tenant, **headers}
        ack = json.loads((await nc.request(job.subject, job.to_wire(), timeout=ACK_WITHIN_S, headers=wire)).data)
        if "error" in ack:
            raise Unavailable("the bus", detail=ack["error"].get("description", ""))
        return job_id
