"""What a provider says went wrong, as a ModelError: who may try again, when, and who may have to pay."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from wayline.contracts.money import Usage
from wayline.llm.model import ErrorCode, ModelError

SAID_MAX_CHARS = 500
RETRYABLE: frozenset[ErrorCode] = frozenset(
    {"rate_limited", "overloaded", "server_error", "connection", "timeout", "stream_cut"}
)
# Some endpoints say these only in prose. A per-minute "quota" is not a spend cap: it passes.
OUT_OF_MONEY = re.compile(
    r"credit balance|billing hard limit|spend(ing)?[ _-]?(cap|limit)|specified api usage limit"
    r"|insufficient (funds|balance|credits?)",
    re.IGNORECASE,
)
TOO_LONG = re.compile(
    r"context[_ ](length|window|size|limit)|(prompt|input) is too long|too many (input |prompt )?tokens"
    r"|maximum (number of )?(input |prompt )?tokens|input token count|exceeds? the (model'?s )?(maximum )?context",
    re.IGNORECASE,
)
NO_MODEL = re.compile(r"model.{0,80}(does not exist|not found)", re.IGNORECASE | re.DOTALL)
OURS = re.compile(r"invalid|policy|unsupported|image", re.IGNORECASE)
"""Words of errors that the same request would meet again."""

KINDS: dict[str, ErrorCode] = {
    "authentication_error": "authentication",
    "permission_error": "authentication",
    "invalid_api_key": "authentication",
    "billing_error": "spend_cap",
    "billing_hard_limit_reached": "spend_cap",
    "billing_not_active": "spend_cap",
    "insufficient_quota": "spend_cap",
    "not_found_error": "unknown_model",
    "model_not_found": "unknown_model",
    "deploymentnotfound": "unknown_model",
    "request_too_large": "context_too_long",
    "context_length_exceeded": "context_too_long",
    "string_above_max_length": "context_too_long",
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "overloaded_error": "overloaded",
    "overloaded": "overloaded",
    "server_overloaded": "overloaded",
    "server_is_overloaded": "overloaded",
    "timeout_error": "timeout",
    "timeout": "timeout",
    "api_error": "server_error",
    "server_error": "server_error",
    "internal_error": "server_error",
}
"""What providers call an error, in its `code` or its `type`."""

STATUSES: dict[int, ErrorCode] = {
    401: "authentication",
    402: "spend_cap",
    403: "authentication",
    404: "unknown_model",
    408: "timeout",
    409: "server_error",
    413: "context_too_long",
    429: "rate_limited",
    504: "timeout",
    529: "overloaded",
}
BEGUN = frozenset({504})
"""Statuses of somebody between us and the provider, who may have been at work for a while."""
UNTOLD = 200
"""The status of an error within an answer, where it names none of its own."""
MALFORMED = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RecursionError)
"""What reading raises where an answer's parts are of other kinds than they should be."""
_WAITING = frozenset({"retry-after-ms", "retry-after", "date"})


def refused(status: int, headers: Mapping[str, str], body: bytes | str, *, now: datetime | None = None) -> ModelError:
    """An answer that is not a 200."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else body
    error = _error(text)
    code = _code(status, error)
    return ModelError(
        code,
        f"{status}: {str(error.get('message') or text)[:SAID_MAX_CHARS]}",
        # A provider that says whether to try again knows more than its status does.
        retryable=code in RETRYABLE and headers.get("x-should-retry") != "false",
        after_s=retry_after_s(headers, now=now or datetime.now(UTC)) if code in RETRYABLE else None,
        billable=status in BEGUN,
        param=str(error.get("param") or ""),
    )


def reported(error: Any, *, usage: Usage | None = None) -> ModelError:
    """An error told within an answer, after the provider has begun: what it made until then may be billed.

    `usage`: what it has counted in the end, where that came with the error.
    """
    said = error if isinstance(error, dict) else {"message": error}
    status = next((said[key] for key in ("status_code", "status", "code") if isinstance(said.get(key), int)), UNTOLD)
    code = _code(status, said)
    message = str(said.get("message") or orjson.dumps(error, default=str).decode())[:SAID_MAX_CHARS]
    return ModelError(code, f"in the stream: {message}", retryable=code in RETRYABLE, billable=True, usage=usage)


def cut() -> ModelError:
    """A stream that ended politely, but before the message did."""
    return ModelError("stream_cut", "the stream ended before the message did", retryable=True, billable=True)


def empty() -> ModelError:
    """Make the error of an answer of nothing: not even an empty message."""
    return ModelError("stream_cut", "the provider answered with nothing", retryable=True, billable=True)


def unreadable(error: Exception) -> ModelError:
    """Make the error of a malformed answer: another try may be answered better."""
    said = f"the answer is malformed: {type(error).__name__}: {error}"[:SAID_MAX_CHARS]
    return ModelError("unreadable", said, retryable=True, billable=True)


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """How long the provider wants to be left alone: milliseconds, seconds, or a date by its own clock."""
    found = {name.lower(): value for name, value in headers.items() if name.lower() in _WAITING}
    milliseconds = _number(found.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    seconds, until = _number(found.get("retry-after")), _date(found.get("retry-after"))
    if seconds is None and until is not None:
        seconds = max(0.0, (until - (_date(found.get("date")) or now)).total_seconds())
    return seconds


def _code(status: int, error: Mapping[str, Any]) -> ErrorCode:
    """One of our codes for a status and the provider's error object; the most telling word wins."""
    said = " ".join(str(error.get(key) or "") for key in ("message", "code", "type"))
    if status < 500 and OUT_OF_MONEY.search(said):
        return "spend_cap"
    # `type` is often the wide class of a narrow `code`.
    for key in ("code", "type"):
        if named := KINDS.get(str(error.get(key)).lower()):
            return named
    if status in (UNTOLD, 400, 413, 422) and TOO_LONG.search(said):
        return "context_too_long"
    if status in (UNTOLD, 400) and NO_MODEL.search(said):
        return "unknown_model"
    if status in STATUSES:
        return STATUSES[status]
    # Of an error within an answer its words are all there is.
    ours = OURS.search(said) if status == UNTOLD else 400 <= status < 500
    return "invalid_request" if ours else "server_error"


def _error(text: str) -> dict[str, Any]:
    """The error object of a body, wherever this endpoint puts it."""
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"message": text}
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return {"message": text}
    error = body.get("error", body)
    return error if isinstance(error, dict) else {"message": error}


def _number(said: str | None) -> float | None:
    try:
        number = float(said) if said else math.nan
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _date(said: str | None) -> datetime | None:
    try:
        at = parsedate_to_datetime(said) if said else None
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at and at.tzinfo is None else at
