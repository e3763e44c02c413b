"""`run_agent`: a task for an agent as one tool call, and `wait_for_job` for one that took longer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Annotated, Any, Final

import anyio
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from wayline.contracts import ids
from wayline.contracts.base import Usd, plain
from wayline.contracts.chat import Citation
from wayline.contracts.errors import Reject
from wayline.contracts.events import Event, JobParked
from wayline.contracts.jobs import JobView, Status, SubmitJob
from wayline.contracts.progress import Progress
from wayline.gateway.handlers.mcp.cancel_request import cancel_job
from wayline.gateway.handlers.mcp.requests import McpRequest
from wayline.gateway.handlers.mcp.tool_rights import WAIT_FOR_JOB
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.own_jobs import require_own_job, require_own_session
from wayline.gateway.handlers.shared.read_job import FOR_A_PERSON, find_log, has_ended, read_job
from wayline.gateway.handlers.shared.submit_job import submit
from wayline.gateway.shapes.body import ONE_LINE, Label
from wayline.journal import fold, follow, view, with_progress


class RunAgent(BaseModel):
    """Arguments of `run_agent`."""

    model_config = ConfigDict(extra="forbid")

    agent: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=ONE_LINE)] = Field(
        description="Which agent."
    )
    input: Annotated[str, StringConstraints(min_length=1)] = Field(
        description="The task, with all that the agent needs to know: it sees nothing else of this conversation."
    )
    session_id: Label | None = Field(
        default=None, description="Jobs of one session see the turns before them. Choose any id, and give it again."
    )


class WaitForJob(BaseModel):
    """Arguments of `wait_for_job`."""

    model_config = ConfigDict(extra="forbid")

    job_id: ids.JobId = Field(description="As run_agent returned it.")


class JobOutcome(BaseModel):
    """What came of a job, as structured content."""

    job_id: str
    status: Status = Field(description="`completed`, `failed`, `cancelled`; any other: it has not ended.")
    answer: str | None = None
    partial: bool = Field(default=False, description="A limit was reached: the answer is what there was until then.")
    reason: str | None = None
    agent: str
    session_id: str | None = None
    steps: int = 0
    cost_usd: Usd | None = Field(default=None, description="USD; null when a call's price is unknown.")
    citations: list[Citation] = Field(default_factory=list)
    waiting_for: str | None = Field(default=None, description="What a job that has not ended waits for.")
    trace: str = Field(description="The resource that holds all it did.")


JOB_OUTCOME: Final[dict[str, Any]] = JobOutcome.model_json_schema(mode="serialization")


class AgentRuns:
    """Runs agents for MCP clients, and waits for their jobs."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def call(self, request: McpRequest, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Run an agent, or wait for its job. Raises what the router refuses jobs with, and what `submit` raises."""
        try:
            if tool == WAIT_FOR_JOB:
                wanted = WaitForJob.model_validate(arguments).job_id
                await require_own_job(self._gateway, request.caller, wanted)
                await find_log(self._gateway, request.caller.tenant, wanted)
                return outcome_of(await self._job_after_wait(request, wanted))
            return await self._run(request, RunAgent.model_validate(arguments))
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {plain(e['msg'])}" for e in error.errors())
            raise Reject(f"{tool} does not take these arguments: {wrong}", code="invalid_arguments") from None

    async def _run(self, request: McpRequest, asked: RunAgent) -> CallToolResult:
        request.require("write", to="run agents")
        gateway, tenant = self._gateway, request.caller.tenant
        gateway.streams.require_room(request.caller)
        await require_own_session(gateway, request.caller, asked.session_id)
        job = SubmitJob(
            tenant=tenant,
            job_id=request.ids.job_id,
            agent=asked.agent,
            input=asked.input,
            session_id=asked.session_id,
            user_id=request.user_id,
        )
        job_id = await submit(
            gateway, job, own_id=True, key=None, caller=request.traced_from, by=request.caller, door="mcp"
        )
        try:
            return outcome_of(await self._job_after_wait(request, job_id))
        except asyncio.CancelledError:
            if request.closes_to_cancel:
                with anyio.CancelScope(shield=True):
                    await cancel_job(gateway, tenant, job_id)
            raise

    async def _job_after_wait(self, request: McpRequest, job_id: str) -> JobView:
        """Return the job when it has ended, waits for a person, or has been waited for as long as may be."""
        tenant = request.caller.tenant
        with self._gateway.streams.follower(request.caller) as follower:
            try:
                async with asyncio.timeout(self._gateway.settings.mcp_wait_max_s):
                    return await self._followed(request, job_id)
            except TimeoutError:
                pass
            except asyncio.CancelledError:
                # Where this process is stopping, the job goes on without it.
                if not follower.absorb_stop():
                    raise
        return await read_job(self._gateway, tenant, job_id)

    async def _followed(self, request: McpRequest, job_id: str) -> JobView:
        """Follow a job and tell the client what it does, until it has ended or waits for a person."""
        tenant, events, told = request.caller.tenant, list[Event](), 0
        async with aclosing(with_progress(follow(self._gateway.bus, tenant, job_id))) as news:
            async for item in news:
                if isinstance(item, Event):
                    events.append(item)
                if isinstance(item, JobParked) and item.waiting.why in FOR_A_PERSON:
                    job = await read_job(self._gateway, tenant, job_id)
                    if job.waiting_for is not None and job.waiting_for.why in FOR_A_PERSON:
                        return job
                if item is None or (isinstance(item, Progress) and item.phase == "started"):
                    told += 1
                    await request.progress(told, message=_line(item))
        return view(fold(events))


def _line(progress: Progress | None) -> str:
    if progress is None:
        return "Still at work"
    step = f"step {progress.iteration}" + (f" of {progress.of}" if progress.of else "")
    return f"{progress.message} ({step})" if progress.iteration else progress.message


def outcome_of(job: JobView) -> CallToolResult:
    """Return a job as the result of a tool."""
    waiting = job.waiting_for
    outcome = JobOutcome(
        job_id=job.job_id,
        status=job.status,
        answer=job.answer,
        partial=job.partial,
        reason=job.error.message if job.error else job.reason,
        agent=job.agent,
        session_id=job.session_id,
        steps=job.steps,
        cost_usd=job.cost_usd,
        citations=list(job.citations),
        waiting_for=waiting.why if waiting else None,
        trace=f"job://{job.job_id}/trace",
    )
    return CallToolResult(
        content=[TextContent(type="text", text=_text(job))],
        structured_content=outcome.model_dump(mode="json"),
        is_error=job.status in {Status.FAILED, Status.CANCELLED},
    )


def _text(job: JobView) -> str:
    if job.status is Status.COMPLETED:
        return job.answer or ""
    if has_ended(job):
        why = job.error.message if job.error else job.reason
        return f"job {job.job_id} {job.status.value}{f': {why}' if why else ''}"
    waiting = job.waiting_for
    if waiting is not None and waiting.why in FOR_A_PERSON:
        question = f": {waiting.question}" if waiting.question else ""
        return (
            f"job {job.job_id} waits for a person ({waiting.why}){question}. Nothing more happens until a person "
            f"decides (`wayline approvals`, `wayline jobs show {job.job_id}`); then wait_for_job has its answer."
        )
    return f"job {job.job_id} is still {job.status.value}: call wait_for_job with its id for its answer."
