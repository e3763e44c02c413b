"""When a failed delivery is tried again, and when it is given up. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from wayline.contracts.webhooks import Attempt

MINUTE_S, HOUR_S = 60.0, 3_600.0
WAITS_S = (5.0, 5 * MINUTE_S, 30 * MINUTE_S, 2 * HOUR_S, 5 * HOUR_S, 10 * HOUR_S, 10 * HOUR_S)
"""After the first try, the second …: 27 and a half hours in all."""
JITTER = 0.2
"""A wait is up to so much longer, by chance: receivers that come back are not all asked in one moment."""
RETRY_AFTER_MAX_S = 24 * HOUR_S
GONE = 410


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """What becomes of a delivery after a try."""

    delivered: bool = False
    next_at: datetime | None = None
    """When it is tried again; None: never."""
    reason: str = ""
    """Why it is given up."""
    is_gone: bool = False
    """The receiver says that it wants no more of this webhook."""


def after_attempt(
    attempt: Attempt, *, number: int, retried: bool, chance: float, retry_after_s: float | None = None
) -> DeliveryOutcome:
    """Return what becomes of a delivery whose `number`th try was this; `chance` is a random share of the jitter."""
    if attempt.error is None:
        return DeliveryOutcome(delivered=True)
    if attempt.status == GONE:
        return DeliveryOutcome(reason=attempt.error, is_gone=True)
    if not retried or number > len(WAITS_S):
        if number == 1:
            return DeliveryOutcome(reason=attempt.error)
        return DeliveryOutcome(reason=f"all {number} tries failed, the last one so: {attempt.error}")
    wait_s = WAITS_S[number - 1] * (1 + JITTER * chance)
    if retry_after_s is not None:
        wait_s = max(wait_s, min(retry_after_s, RETRY_AFTER_MAX_S))
    return DeliveryOutcome(next_at=attempt.at + timedelta(milliseconds=attempt.duration_ms, seconds=wait_s))
