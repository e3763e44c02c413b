"""Decide which failed requests are tried again, and name a page's failure."""

from __future__ import annotations

from wayline.guarded_http import BadStatus, GuardedRequestError, TimedOut, Unreachable

RETRIED_STATUSES = frozenset({403, 408, 425, 429})
RETRY_AFTER_MAX_S = 5.0


class CannotFetch(Exception):
    """A page that is not to be had; what to tell the model."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def wait_before_retry(error: GuardedRequestError, attempt: int, *, first_s: float) -> float | None:
    """Return how long to wait before the next attempt; None: another one would not help."""
    backoff_s = first_s * 2 ** (attempt - 1)
    if isinstance(error, Unreachable):
        return backoff_s
    if not isinstance(error, BadStatus) or (error.status not in RETRIED_STATUSES and error.status < 500):
        return None
    asked_s = error.retry_after_s
    if asked_s is not None and asked_s > RETRY_AFTER_MAX_S:
        return None
    return max(backoff_s, asked_s or 0.0)


def may_pass(error: GuardedRequestError) -> bool:
    """Return whether a failure says nothing of the file that was asked for: another time it may be there."""
    if isinstance(error, BadStatus):
        return error.status == 429 or error.status >= 500
    return isinstance(error, Unreachable | TimedOut)


def cannot_fetch(error: GuardedRequestError) -> CannotFetch:
    """Return why a page was not fetched, for the model."""
    advice = {
        403: "; the site does not let programs read this page",
        401: "; the page needs a login",
        404: "; there is no such page",
        410: "; the page is gone",
        429: "; the site asks for fewer requests",
    }
    hint = advice.get(error.status, "") if isinstance(error, BadStatus) else ""
    if isinstance(error, TimedOut):
        hint = "; another page may be quicker"
    return CannotFetch(error.code, f"{error}{hint}")
