"""Give a job what its caller's own tools returned: each result once, the first of a call counts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from wayline.contracts.errors import NotFound
from wayline.contracts.jobs import Signal, ToolResult, ToolResults
from wayline.gateway.errors import JobEnded
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.keys import Caller
from wayline.journal import ClientCalls, JobLog, ResultConflict, State


async def give_results(gateway: Gateway, caller: Caller, job_id: str, results: Sequence[ToolResult]) -> None:
    """Store results for a job, unless it has them. Raises NotFound, JobEnded and ResultConflict."""
    log = JobLog(gateway.bus, caller.tenant, job_id)
    head = await log.last()
    if head is None and await gateway.submissions.queued(caller.tenant, job_id) is None:
        raise NotFound("job", job_id)
    heard = head.signals_seen if head else 0
    calls = await ClientCalls.of(log.read())
    new = calls.new(results, told=await _on_their_way(gateway, caller.tenant, job_id, after=heard))
    if not new:
        return
    if head is not None and head.state is State.ENDED:
        raise JobEnded(job_id=job_id)
    told = ToolResults(results=new, by=caller.name)
    await gateway.signals.send(Signal(tenant=caller.tenant, job_id=job_id, signal=told))
    # Of two who gave another one at the same moment the first counts, and the second is told.
    first = await _on_their_way(gateway, caller.tenant, job_id, after=heard)
    for result in new:
        if first.get(result.key, result).digest != result.digest:
            raise ResultConflict(result.key)


async def _on_their_way(gateway: Gateway, tenant: str, job_id: str, *, after: int) -> dict[str, ToolResult]:
    """Return the results that are stored for a job past a place in the stream: of each call the first."""
    found: dict[str, ToolResult] = {}
    async with aclosing(gateway.signals.unheard(Signal, tenant, job_id, after=after)) as told:
        async for one in told:
            for result in one.signal.results if isinstance(one.signal, ToolResults) else ():
                found.setdefault(result.key, result)
    return found
