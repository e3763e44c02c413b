"""What a provider's refusal means: one code of ours, whether to try again, and when."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from wayline.llm.model import ErrorCode, ModelError

EXPLANATION_MAX_CHARS = 500
RETRYABLE: frozenset[ErrorCode] = frozenset({"rate_limited", "overloaded", "server_error", "connection", "timeout"})

_CODES: dict[str, ErrorCode] = {
    "insufficient_quota": "spend_cap",
    "billing_hard_limit_reached": "spend_cap",
    "billing_not_active": "spend_cap",
    "context_length_exceeded": "context_too_long",
    "string_above_max_length": "context_too_long",
    "model_not_found": "unknown_model",
    "deploymentnotfound": "unknown_model",
    "rate_limit_exceeded": "rate_limited",
    "rate_limit_error": "rate_limited",
    "overloaded_error": "overloaded",
    "overloaded": "overloaded",
    "server_is_overloaded": "overloaded",
    "authentication_error": "authentication",
    "permission_error": "authentication",
    "invalid_api_key": "authentication",
    "invalid_request_error": "invalid_request",
    "server_error": "server_error",
    "api_error": "server_error",
    "internal_error": "server_error",
    "timeout": "timeout",
}
"""The words that providers put into an error's `code` or `type`, told apart."""
_STATUSES: dict[int, ErrorCode] = {
    401: "authentication",
    402: "spend_cap",
    403: "authentication",
    404: "unknown_model",
    408: "timeout",
    409: "server_error",
    429: "rate_limited",
    529: "overloaded",
}
# Some endpoints say these two only in prose. A per-minute "quota" is not a spend cap: it passes.
_SPENT = re.compile(
    r"spend(ing)? (cap|limit)|credit balance|billing hard limit|insufficient (funds|balance|credits?)", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"context (length|window|size)|prompt is too long|too many (input |prompt )?tokens"
    r"|maximum (number of )?(input |prompt )?tokens|input (token count|is too long)",
    re.IGNORECASE,
)


def refused(status: int, headers: Mapping[str, str], body: bytes | str, *, now: datetime | None = None) -> ModelError:
    """The error for an answer that is not a 200: nothing was generated, so nothing is billed."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else body
    code = classify(status, _error_in(text))
    return ModelError(
        code,
        f"{status}: {text[:EXPLANATION_MAX_CHARS]}",
        retryable=code in RETRYABLE,
        after_s=retry_after_s(headers, now=now or datetime.now(UTC)),
    )


def broke_off(error: Any) -> ModelError:
    """The error for one that was told inside a 200: by then the provider may have begun to answer."""
    said = error if isinstance(error, dict) else {"message": error}
    status = next((said[key] for key in ("status_code", "status", "code") if isinstance(said.get(key), int)), 200)
    code = classify(status, said)
    text = orjson.dumps(error, default=str).decode()[:EXPLANATION_MAX_CHARS]
    return ModelError(code, f"in the answer: {text}", retryable=code in RETRYABLE, billable=True)


def classify(status: int, error: Mapping[str, Any]) -> ErrorCode:
    """One of our codes for a status and the provider's error object; the most telling word wins."""
    said = " ".join(str(error.get(key) or "") for key in ("message", "code", "type"))
    if status < 500 and _SPENT.search(said):
        return "spend_cap"
    named: list[ErrorCode] = [
        _CODES[word] for key in ("code", "type") if (word := str(error.get(key)).lower()) in _CODES
    ]
    # `type` is often the wide class of a narrow `code`; a status says more than `invalid_request_error` does.
    for code in named:
        if code != "invalid_request":
            return code
    if status in (400, 413, 422) and _TOO_LONG.search(said):
        return "context_too_long"
    if status in _STATUSES:
        return _STATUSES[status]
    # Of an error inside a 200 the status says nothing.
    refused_outright = 400 <= status < 500 or (status < 400 and "invalid_request" in named)
    return "invalid_request" if refused_outright else "server_error"


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """When the provider says to come back: milliseconds, seconds, or a date by its own clock."""
    found = {name.lower(): value for name, value in headers.items() if name.lower() in _WAITING}
    milliseconds = _number(found.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    seconds, until = _number(found.get("retry-after")), _date(found.get("retry-after"))
    if seconds is None and until is not None:
        seconds = max(0.0, (until - (_date(found.get("date")) or now)).total_seconds())
    return seconds


_WAITING = frozenset({"retry-after-ms", "retry-after", "date"})


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text else math.nan
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _date(text: str | None) -> datetime | None:
    try:
        when = parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
    return when.replace(tzinfo=UTC) if when and when.tzinfo is None else when


def _error_in(text: str) -> dict[str, Any]:
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
