"""Go on with the job of a client that has run the tools that it was asked to run."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Request

from wayline.contracts.errors import Conflict, NotFound
from wayline.contracts.events import Event
from wayline.contracts.jobs import PendingToolCall, ToolResult
from wayline.gateway.errors import UnsupportedParameter
from wayline.gateway.handlers.openai.begin_job import Begun, request_id
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.give_results import give_results
from wayline.gateway.handlers.shared.own_jobs import require_own_job
from wayline.gateway.keys import Caller
from wayline.gateway.openai.client_tools import CallId, GivenResult
from wayline.gateway.openai.job_parts import part_after
from wayline.journal import JobLog, fold


async def continue_job(gateway: Gateway, request: Request, caller: Caller, given: Sequence[GivenResult]) -> Begun:
    """Give a job the results in a request, and return the part of it that follows them.

    The same results again change nothing, so that a request may be sent again. Raises UnsupportedParameter.
    """
    calls = [(one, CallId.read(one.call_id)) for one in given]
    unknown = next((one for one, call in calls if call is None), None)
    if unknown is not None:
        raise _unknown(unknown)
    named = {call.job_id for _, call in calls if call is not None}
    if len(named) > 1:
        raise UnsupportedParameter(given[0].param, "these results are of calls of several jobs", code="invalid_results")
    job_id = named.pop()
    results = [ToolResult(key=call.key(caller.tenant), content=one.content) for one, call in calls if call is not None]
    try:
        await require_own_job(gateway, caller, job_id)
    except NotFound:
        raise _unknown(given[0]) from None
    events = [event async for event in JobLog(gateway.bus, caller.tenant, job_id).read()]
    part = part_after(events, {result.key for result in results})
    if part is None:
        raise _unknown(given[0])
    if left := _left(events, results):
        names = ", ".join(str(CallId.of(job_id, one)) for one in left)
        raise UnsupportedParameter(given[0].param, f"there is no result of {names}", code="missing_result")
    try:
        await give_results(gateway, caller, job_id, results)
    except (NotFound, Conflict) as error:
        raise UnsupportedParameter(given[0].param, str(error), code=error.code) from None
    sent = await request_id(request, caller)
    await gateway.resent_requests.note(sent, job_id)
    return Begun(job_id, sent, part)


def _left(events: Sequence[Event], results: Sequence[ToolResult]) -> list[PendingToolCall]:
    """Return the calls that a job would wait for beside those that it is given results of."""
    waiting, given = fold(events).life.waiting, {result.key for result in results}
    return [call for call in waiting.tool_calls if call.key not in given] if waiting is not None else []


def _unknown(result: GivenResult) -> UnsupportedParameter:
    return UnsupportedParameter(result.param, f"no job here has made the call {result.call_id!r}", code="unknown_call")
