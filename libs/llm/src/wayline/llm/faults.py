"""What goes wrong between us and a provider, as a ModelError: who may try again, when, and who may have to pay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import httpx2
import orjson

from wayline.llm.model import ErrorCode, ModelError

SAID_MAX_CHARS = 500
RETRYABLE: frozenset[ErrorCode] = frozenset(
    {"rate_limited", "overloaded", "server_error", "connection", "timeout", "stream_cut"}
)
TOO_LONG = re.compile(
    r"context_length_exceeded|request_too_large|prompt is too long|input is too long|maximum context length"
    r"|exceeds? the (model'?s )?(maximum )?context|context window|exceed context limit|too many (input )?tokens",
    re.IGNORECASE,
)
OUT_OF_MONEY = re.compile(
    r"insufficient_quota|billing_|billing hard limit|credit balance|spend(ing)?[ _-]?(cap|limit)"
    r"|specified api usage limit|exceeded your current quota",
    re.IGNORECASE,
)
OURS = re.compile(r"invalid|policy|unsupported|image", re.IGNORECASE)
"""Words of errors that the same request would meet again."""
NO_MODEL = re.compile(r"model_not_found|model.{0,80}(does not exist|not found)", re.IGNORECASE | re.DOTALL)

KINDS: dict[str, ErrorCode] = {
    "authentication_error": "authentication",
    "permission_error": "authentication",
    "invalid_api_key": "authentication",
    "billing_error": "spend_cap",
    "insufficient_quota": "spend_cap",
    "not_found_error": "unknown_model",
    "model_not_found": "unknown_model",
    "request_too_large": "context_too_long",
    "context_length_exceeded": "context_too_long",
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "overloaded_error": "overloaded",
    "server_overloaded": "overloaded",
    "timeout_error": "timeout",
    "api_error": "server_error",
    "server_error": "server_error",
    "internal_error": "server_error",
}
"""What providers call an error, in its `type` or its `code`."""

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
NO_ADDRESS = (httpx2.UnsupportedProtocol, httpx2.InvalidURL, aiohttp.InvalidURL)
"""What the transport says of a base URL that is none."""


def refused(status: int, headers: Mapping[str, str], body: str, *, now: datetime) -> ModelError:
    """An answer that is not a 200."""
    code = _status_code(status, body)
    return ModelError(
        code,
        f"{status}: {_message(body)[:SAID_MAX_CHARS]}",
        # A provider that says whether to try again knows more than its status does.
        retryable=code in RETRYABLE and headers.get("x-should-retry") != "false",
        after_s=retry_after_s(headers, now=now) if code in RETRYABLE else None,
        billable=status in BEGUN,
    )


def reported(error: Mapping[str, Any]) -> ModelError:
    """An error that comes as an event, after the provider has begun: what it made until then may be billed."""
    said = orjson.dumps(dict(error)).decode()
    named = KINDS.get(str(error.get("type"))) or KINDS.get(str(error.get("code")))
    code = _sharper(named or ("invalid_request" if OURS.search(said) else "server_error"), said)
    message = str(error.get("message") or said)[:SAID_MAX_CHARS]
    return ModelError(code, f"in the stream: {message}", retryable=code in RETRYABLE, billable=True)


def broken(error: BaseException, *, answering: bool) -> ModelError:
    """A connection that failed: before there was one, while waiting for the answer, or in the middle of it."""
    causes = list(_causes(error))
    said = "; ".join(dict.fromkeys(f"{type(each).__name__}: {each}".rstrip(": ") for each in causes))[:SAID_MAX_CHARS]
    if any(isinstance(each, NO_ADDRESS) for each in causes):
        return ModelError("connection", said, retryable=False)
    if any(isinstance(each, aiohttp.ClientConnectorError) for each in causes):
        return ModelError("connection", said, retryable=True)
    if any(isinstance(each, aiohttp.ConnectionTimeoutError) for each in causes):
        return ModelError("timeout", said, retryable=True)
    if any(isinstance(each, (TimeoutError, httpx2.TimeoutException)) and not _refusal(each) for each in causes):
        return ModelError("timeout", said, retryable=True, billable=True)
    if answering:
        return ModelError("stream_cut", said, retryable=True, billable=True)
    return ModelError("connection", said, retryable=True, billable=True)


def cut() -> ModelError:
    """A stream that ended politely, but before the message did."""
    return ModelError("stream_cut", "the stream ended before the message did", retryable=True, billable=True)


def no_usage() -> ModelError:
    return ModelError(
        "no_usage", "the provider sent no usage, so nobody can say what it cost", retryable=False, billable=True
    )


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """How long the provider wants to be left alone: milliseconds, seconds or a date; None when it does not say."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after")
    seconds = _number(said)
    if seconds is not None or not said:
        return seconds
    try:
        at = parsedate_to_datetime(said)
    except ValueError:
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())


def _status_code(status: int, body: str) -> ErrorCode:
    error = _error(body)
    named = KINDS.get(str(error.get("code"))) or KINDS.get(str(error.get("type")))
    # An overloaded provider says so by any status of its own; for the rest the status knows best.
    if named == "overloaded" and status >= 500:
        return named
    by_status = STATUSES.get(status) or ("server_error" if status >= 500 else "invalid_request")
    return _sharper(by_status, body)


def _sharper(code: ErrorCode, said: str) -> ErrorCode:
    """What only the words tell: a limit that waiting does not lift, a prompt that is too long, a model that is not."""
    if code in ("rate_limited", "invalid_request") and OUT_OF_MONEY.search(said):
        return "spend_cap"
    if code == "invalid_request" and TOO_LONG.search(said):
        return "context_too_long"
    if code == "invalid_request" and NO_MODEL.search(said):
        return "unknown_model"
    return code


def _error(body: str) -> dict[str, Any]:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    error = said.get("error") if isinstance(said, dict) else None
    return error if isinstance(error, dict) else {}


def _message(body: str) -> str:
    return str(_error(body).get("message") or body)


def _number(said: str | None) -> float | None:
    try:
        return max(0.0, float(said)) if said else None
    except ValueError:
        return None


def _causes(error: BaseException | None):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _refusal(error: BaseException) -> bool:
    # One SDK's transport calls every lost connection a timeout; the cause below it tells the truth.
    return isinstance(error.__cause__, aiohttp.ClientConnectionError) and not isinstance(error.__cause__, TimeoutError)
