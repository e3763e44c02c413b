"""What every priced call has in common: its money is held, it is listened to until it ends, its cost is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.budgets import Extended
from wayline.contracts.jobs import Failure
from wayline.contracts.money import Usage
from wayline.executor.adapters.model_providers import Heard
from wayline.executor.decide import worst_case
from wayline.executor.hold.held_job import Cancelled, HeldJob
from wayline.executor.perform.services import RunServices
from wayline.llm import Finished, ModelError, ModelRequest, cost
from wayline.llm.labels import provider_label
from wayline.telemetry import metrics


@dataclass(frozen=True, slots=True)
class Lapse:
    """How a call ended that brought nothing."""

    failure: Failure
    error: ModelError | None = None
    """What the provider said, where it was the provider's."""
    retryable: bool = False


STOPPED = Lapse(Failure(code=e.LOST, message="its executor was stopped"), retryable=True)
"""The process ends in a hurry: whoever holds the job next reads what was heard until then."""


Asked = e.ModelRequested | e.AuxiliaryRequested
"""The intent of a call: what it can cost at most, and when it was asked."""


async def fund(
    hands: RunServices, hold: HeldJob, request: ModelRequest, worst_usd: Decimal | None, *, waits: bool
) -> Extended | None:
    """See that a call's worst case is held: the budgets' word where they had to be asked, else None.

    Raises Cancelled, and Reject.
    """
    job = hold.pen.job
    need = worst_case.shortfall(job, worst_usd)
    if need is None:
        return None
    asking = hands.budgets.extend(job, attempt_id=request.attempt_id, total_usd=need.total_usd, waits=waits)
    return await hold.listening(asking, finish_when_draining=False)


async def hear(
    hold: HeldJob,
    call: Coroutine[Any, Any, Finished],
    request: ModelRequest,
    *,
    seconds: float,
    cancelled: str,
    late: str,
    note: Callable[[Finished | Lapse], None],
) -> Finished | Lapse:
    """Make a call, for so many seconds, and note how it ended, also where the process is stopped meanwhile.

    `cancelled` and `late` are what is said of one that was not let finish.
    """
    try:
        ended = await hold.listening(call, finish_when_draining=True, seconds=seconds)
    except ModelError as error:
        metrics.model_failures.labels(provider_label(request.card.provider), error.code).inc()
        # Kept without its traceback: the frames in there hold, by way of us, the error itself.
        kept = error.with_traceback(None)
        ended = Lapse(Failure(code=error.code, message=str(error)), kept, retryable=error.retryable)
    except Cancelled:
        ended = Lapse(Failure(code="cancelled", message=cancelled))
    except TimeoutError:
        # Not for another try: where it was the job's own limit, that ends the job with what it has.
        ended = Lapse(Failure(code="time_limit", message=late), retryable=True)
    except asyncio.CancelledError:
        note(STOPPED)
        raise
    note(ended)
    return ended


def owed(request: ModelRequest, heard: Heard, asked: Asked, used: Usage | None) -> dict[str, Any]:
    """What a call cost; where its provider told no usage, between what: unknown is not zero, nor a guess."""
    if used is not None:
        return {"cost_usd": cost(request.card, used, at=asked.at)}
    seen, streamed_bytes = heard.usage, heard.bytes
    bounds = worst_case.unsettled(request, asked.worst_usd, seen=seen, streamed_bytes=streamed_bytes, at=asked.at)
    return {"cost_usd": None, "unsettled": bounds}


def lapsed(request: ModelRequest, heard: Heard, asked: Asked, lapse: Lapse) -> dict[str, Any]:
    """Why a call brought nothing, and what it cost all the same."""
    error = lapse.error
    used = error.usage if error else None
    # Whoever has begun to answer bills for it, whatever the error says.
    billable = error is None or error.billable or heard.bytes > 0 or (heard.usage or Usage()).total > 0
    price = owed(request, heard, asked, used) if billable or used is not None else {}
    return {"error": lapse.failure, "usage": used, **price, "duration_ms": round(heard.ms, 3)}
