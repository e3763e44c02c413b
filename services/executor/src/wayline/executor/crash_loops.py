"""Ends jobs that keep killing their holders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nats.aio.msg import Msg

from wayline.chassis import Bus, Delivery, Failpoint
from wayline.chassis.handling.heartbeat import Heartbeat
from wayline.contracts import events as e
from wayline.contracts.chat import ToolCall
from wayline.contracts.jobs import Failure
from wayline.contracts.tools import RUN_AGENT, Effect, ToolError, ToolReply
from wayline.executor.claim_jobs import JobClaims, unread
from wayline.executor.hold.claim import CLAIMS_MAX, Ticket, wrote_nothing_at_all
from wayline.executor.hold.log_writer import LogWriter
from wayline.executor.hold.ticket_end import Acked
from wayline.executor.perform.job_run import RunServices
from wayline.journal import Call, Head, Job, JobLog, fold

CRASH_LOOP = "crash_loop"
SETTLING_CLAIMS_MAX = 2 * CLAIMS_MAX
"""Claims in a row after which a job is given up without a look at its open calls: settling them kills as well."""
GIVEN_UP = f"claimed {CLAIMS_MAX} times in a row without getting anywhere"


class CrashLoops:
    """Gives up jobs that were claimed too often, without reading more of their logs than is safe."""

    def __init__(self, bus: Bus, services: RunServices, claims: JobClaims, heartbeat: Heartbeat) -> None:
        self._bus = bus
        self._services = services
        self._claims = claims
        self._heartbeat = heartbeat

    async def give_up(self, jobs: JobLog, head: Head, ticket: Ticket, message: Msg, attempt: int) -> Acked:
        """End a job that keeps killing its holders, before folding it: the fold may be what kills.

        Its open tool calls are settled first, unless that was tried before and killed, too.
        """
        open_calls: list[dict[str, Any]] = []
        if not wrote_nothing_at_all(head, ticket) and attempt <= SETTLING_CLAIMS_MAX:
            open_calls = await _open_calls(jobs, head)
        writer, _ = self._claims.begin(jobs, head, unread(head, ticket), ticket, attempt)
        if open_calls:
            await writer.append(Failpoint.EXECUTOR_CLAIM_BEFORE, Failpoint.EXECUTOR_CLAIM_AFTER)
            await self._heartbeat.during(message, self._settle_calls(writer, open_calls))
        end = writer.note(
            e.JobFailed, error=Failure(code=CRASH_LOOP, message=GIVEN_UP), cost_usd=writer.job.money.cost_usd
        )
        await writer.append(Failpoint.EXECUTOR_END_BEFORE, Failpoint.EXECUTOR_END_AFTER)
        return await self.put_aside(jobs, [end], message)

    async def _settle_calls(self, writer: LogWriter, open_calls: list[dict[str, Any]]) -> None:
        """Have the ledger end each call and note how it ended; a tool's result is in the ledger alone."""
        for value in open_calls:
            wanted = ToolCall(call=value["call"], tool=value["tool"], arguments=value["arguments"])
            call = Call(wanted=wanted, key=value["key"], effect=Effect(value["effect"]))
            job = writer.job._replace(model=writer.job.model._replace(step=value["step"]))
            if wanted.tool == RUN_AGENT:
                reply = await self._stop_child(writer, job, call)
            else:
                reply = await self._services.tools.void(job, call)
            writer.note(
                e.ToolCompleted,
                e.SpanRef.model_validate(value["trace"]),
                step=value["step"],
                call=value["call"],
                tool=value["tool"],
                status="success" if reply.status == "success" else "failed",
                error=reply.error,
                cost_usd=reply.cost_usd,
            )

    async def _stop_child(self, writer: LogWriter, job: Job, call: Call) -> ToolReply:
        """Tell the job of a call to stop, without waiting for its end."""
        first = fold(await JobLog(self._bus, job.tenant, job.job_id).first())
        job = first._replace(model=job.model)
        await self._services.children.stop(job, call, GIVEN_UP, lane=writer.head.lane)
        return ToolReply(status="failed", error=ToolError(code="cancelled", message=GIVEN_UP))

    async def put_aside(self, jobs: JobLog, last: Sequence[e.Event], message: Msg) -> Acked:
        """Put a job in a crash loop aside; read only the log's ends, because what lies between may be what kills."""
        await self._bus.put_aside(Delivery.of(message), code=CRASH_LOOP, reason=GIVEN_UP)
        job = fold([*await jobs.first(), *last])
        # What its calls may have cost is in what lies between: all that is held for it counts as not settled.
        costs = job.money.costs.model_copy(update={"unsettled_upper_usd": None})
        job = job._replace(money=job.money._replace(costs=costs))
        await self._heartbeat.during(message, self._services.follow_up.ended(job))
        return Acked()


async def _open_calls(jobs: JobLog, head: Head) -> list[dict[str, Any]]:
    """Read the intents of a log without an end, record by record: no more than one is in memory."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    async for value in jobs.values(head.sequence):
        if value["type"] == "tool.requested":
            found[value["step"], value["call"]] = value
        elif value["type"] == "tool.completed":
            found.pop((value["step"], value["call"]), None)
    return list(found.values())
