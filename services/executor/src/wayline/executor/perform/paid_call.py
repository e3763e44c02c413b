"""Makes paid calls: holds the money, listens until the call ends, and tells its cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.budgets import Extended
from wayline.contracts.jobs import Failure
from wayline.contracts.money import Usage
from wayline.executor.adapters.model_providers import CallProgress
from wayline.executor.decide import worst_case
from wayline.executor.decide.worst_case import Need
from wayline.executor.hold.held_job import Cancelled
from wayline.executor.hold.log_writer import Draft
from wayline.executor.perform.job_run import JobRun
from wayline.llm import Finished, ModelError, ModelRequest, cost
from wayline.llm.labels import provider_label
from wayline.telemetry import metrics

TIME_LIMIT = "time_limit"
"""The code of a call whose job had no more time for it."""


@dataclass(frozen=True, slots=True)
class FailedCall:
    """How a call ended that brought nothing."""

    failure: Failure
    error: ModelError | None = None
    """What the provider said, where it was the provider's."""
    retryable: bool = False


STOPPED = FailedCall(Failure(code=e.LOST, message="its executor was stopped"), retryable=True)
"""The process ends in a hurry: the job's next holder reads what was heard until then."""

Asked = e.ModelRequested | e.AuxiliaryRequested
"""The intent of a call: what it can cost at most, and when it was asked."""


async def fund(run: JobRun, request: ModelRequest, need: Need | None, *, waits: bool) -> Extended | None:
    """Have what a call needs held for the job; return the budgets' answer where they had to be asked, else None.

    Raises Cancelled, and Reject.
    """
    if need is None:
        return None
    job, attempt_id, budgets = run.writer.job, request.attempt_id, run.services.budgets
    return await run.held.listening(budgets.extend(job, attempt_id=attempt_id, total_usd=need.total_usd, waits=waits))


async def hear(
    run: JobRun,
    call: Coroutine[Any, Any, Finished],
    request: ModelRequest,
    *,
    seconds: float,
    cancelled: str,
    late: str,
    failed: Callable[[FailedCall], Draft],
) -> Finished | FailedCall:
    """Make a call, for so many seconds, and return how it ended; note that it `failed` where the process is stopped.

    `cancelled` and `late` say why one was not let finish.
    """
    try:
        return await run.held.listening(call, finish_when_draining=True, seconds=seconds)
    except ModelError as error:
        metrics.model_failures.labels(provider_label(request.card.provider), error.code).inc()
        # Kept without its traceback: the frames in there hold, by way of us, the error itself.
        kept = error.with_traceback(None)
        return FailedCall(Failure(code=error.code, message=str(error)), kept, retryable=error.retryable)
    except Cancelled:
        return FailedCall(Failure(code="cancelled", message=cancelled))
    except TimeoutError:
        # Not for another try: where it was the job's own limit, that ends the job with what it has.
        return FailedCall(Failure(code=TIME_LIMIT, message=late), retryable=True)
    except asyncio.CancelledError:
        # Nobody is left to note what we would return.
        run.writer.note_all([failed(STOPPED)])
        raise


def cost_fields(request: ModelRequest, progress: CallProgress, asked: Asked, used: Usage | None) -> dict[str, Any]:
    """Return what a call cost; where its provider told no usage, between what: unknown is not zero, nor a guess."""
    if used is not None:
        return {"cost_usd": cost(request.card, used, at=asked.at)}
    seen, streamed_bytes = progress.usage, progress.bytes
    bounds = worst_case.unsettled(request, asked.worst_usd, seen=seen, streamed_bytes=streamed_bytes, at=asked.at)
    return {"cost_usd": None, "unsettled": bounds}


def failed_fields(
    request: ModelRequest, progress: CallProgress, asked: Asked, failed_call: FailedCall
) -> dict[str, Any]:
    """Return why a call brought nothing, and what it cost all the same."""
    error = failed_call.error
    used = error.usage if error else None
    # A provider that has begun to answer bills for it, whatever the error says.
    billable = error is None or error.billable or progress.bytes > 0 or (progress.usage or Usage()).total > 0
    price = cost_fields(request, progress, asked, used) if billable or used is not None else {}
    return {"error": failed_call.failure, "usage": used, **price, "duration_ms": round(progress.ms, 3)}
