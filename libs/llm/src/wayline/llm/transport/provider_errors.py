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
from wayline.llm.transport.server_sent_events import begins_stream
from wayline.llm.transport.too_long import TOO_LONG

MESSAGE_MAX_CHARS = 500
QUOTED_MAX_CHARS = 200
RETRYABLE: frozenset[ErrorCode] = frozenset(
    {"rate_limited", "overloaded", "server_error", "connection", "timeout", "stream_cut"}
)
# Some endpoints say these only in prose. A per-minute "quota" is not a spend cap: it passes.
OUT_OF_MONEY = re.compile(
    r"credit balance|billing hard limit|spend(ing)?[ _-]?(cap|limit)|specified api usage limit"
    r"|insufficient (funds|balance|credits?)",
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
    "exceed_context_size_error": "context_too_long",
    "model_max_prompt_tokens_exceeded": "context_too_long",
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
"""Statuses of a proxy between us and the provider, which may have been at work for a while."""
UNTOLD = 200
"""The status of an error within an answer, where it names none of its own."""
MALFORMED = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RecursionError)
"""What reading raises where an answer's parts are of other kinds than they should be."""
_WAITING = frozenset({"retry-after-ms", "retry-after", "date"})


def from_response(
    status: int, headers: Mapping[str, str], body: bytes | str, *, now: datetime | None = None, moved_to: str = ""
) -> ModelError:
    """Make the error of an answer that is not a 200.

    `moved_to`: where a redirect led that turned our request into one without a body, which nobody can answer.
    """
    text = body.decode(errors="replace") if isinstance(body, bytes) else body
    error = _error(text)
    code = _code(status, error)
    moved = f"the provider's address leads on to {moved_to}: use that one; " if moved_to else ""
    return ModelError(
        code,
        f"{moved}{status}: {error.get('message') or text!s}"[:MESSAGE_MAX_CHARS],
        # A provider that says whether to try again knows more than its status does.
        retryable=code in RETRYABLE and headers.get("x-should-retry") != "false",
        after_s=retry_after_s(headers, now=now or datetime.now(UTC)) if code in RETRYABLE else None,
        billable=status in BEGUN,
        param=str(error.get("param") or ""),
    )


def from_stream(error: Any, *, usage: Usage | None = None) -> ModelError:
    """Make the error that came within an answer: what the provider made until then may be billed.

    `usage`: what it has counted in the end, where that came with the error.
    """
    fields = error if isinstance(error, dict) else {"message": error}
    status = next(
        (fields[key] for key in ("status_code", "status", "code") if isinstance(fields.get(key), int)), UNTOLD
    )
    code = _code(status, fields)
    message = str(fields.get("message") or orjson.dumps(error, default=str).decode())[:MESSAGE_MAX_CHARS]
    return ModelError(code, f"in the stream: {message}", retryable=code in RETRYABLE, billable=True, usage=usage)


def within(fields: Mapping[str, Any]) -> Any:
    """Return the error that an object tells which is no part of an answer; None where it tells none."""
    if fields.get("error"):
        return fields["error"]
    kinds = (str(fields.get(key)).lower() for key in ("code", "type"))
    statuses = (fields.get(key) for key in ("code", "status", "status_code"))
    if (
        "error" in (fields.get("object"), fields.get("type"))
        or any(kind in KINDS for kind in kinds)
        or any(isinstance(status, int) and status >= 400 for status in statuses)
    ):
        return fields
    return None


def told_instead(begins: bytes, error: ModelError) -> str:
    """Return what a 200 holds in place of an answer, such as a proxy's page or an endpoint's excuse; else nothing."""
    if error.code != "stream_cut" or begins_stream(begins):
        return ""
    return " ".join(begins[: 4 * QUOTED_MAX_CHARS].decode(errors="replace").split())[:QUOTED_MAX_CHARS]


def no_answer(told: str) -> ModelError:
    """Make the error of a 200 that holds something else than an answer."""
    return ModelError("stream_cut", f"this is no answer: {told}", retryable=True, billable=True)


def stream_cut() -> ModelError:
    """Make the error of a stream that ended politely, but before the message did."""
    return ModelError("stream_cut", "the stream ended before the message did", retryable=True, billable=True)


def empty_answer() -> ModelError:
    """Make the error of an answer of nothing: not even an empty message."""
    return ModelError("stream_cut", "the provider answered with nothing", retryable=True, billable=True)


def malformed(error: Exception) -> ModelError:
    """Make the error of a malformed answer: another try may be answered better."""
    description = f"the answer is malformed: {type(error).__name__}: {error}"[:MESSAGE_MAX_CHARS]
    return ModelError("unreadable", description, retryable=True, billable=True)


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return how long to wait, from milliseconds, seconds, or a date by the provider's clock."""
    found = {name.lower(): value for name, value in headers.items() if name.lower() in _WAITING}
    milliseconds = _number(found.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    seconds, until = _number(found.get("retry-after")), _date(found.get("retry-after"))
    if seconds is None and until is not None:
        seconds = max(0.0, (until - (_date(found.get("date")) or now)).total_seconds())
    return seconds


def _code(status: int, error: Mapping[str, Any]) -> ErrorCode:
    """Return our code for a status and the provider's error object; the most telling word wins."""
    words = " ".join(str(error.get(key) or "") for key in ("message", "code", "type"))
    if status < 500 and OUT_OF_MONEY.search(words):
        return "spend_cap"
    # `type` is often the wide class of a narrow `code`.
    for key in ("code", "type"):
        if named := KINDS.get(str(error.get(key)).lower()):
            return named
    if status in (UNTOLD, 400, 413, 422) and TOO_LONG.search(words):
        return "context_too_long"
    if status in (UNTOLD, 400) and NO_MODEL.search(words):
        return "unknown_model"
    if status in STATUSES:
        return STATUSES[status]
    # Of an error within an answer its words are all there is.
    ours = OURS.search(words) if status == UNTOLD else 400 <= status < 500
    return "invalid_request" if ours else "server_error"


def _error(text: str) -> dict[str, Any]:
    """Find the error object in a body, wherever this endpoint puts it."""
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


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text else math.nan
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _date(text: str | None) -> datetime | None:
    try:
        at = parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at and at.tzinfo is None else at
