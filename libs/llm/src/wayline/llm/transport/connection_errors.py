"""A connection to a provider that failed, as a ModelError: what the SDKs' transport says of it."""

from __future__ import annotations

import aiohttp
import httpx2

from wayline.llm.model import ModelError
from wayline.llm.transport.provider_errors import MESSAGE_MAX_CHARS

NO_ADDRESS = (httpx2.UnsupportedProtocol, httpx2.InvalidURL, aiohttp.InvalidURL)
"""What the transport says of a base URL that is none."""


def from_transport(error: BaseException, *, answering: bool) -> ModelError:
    """Make the error of a failed connection: before it stood, while waiting for the answer, or in the middle of it."""
    causes = list(_causes(error))
    description = _description(causes)[:MESSAGE_MAX_CHARS]
    if any(isinstance(each, NO_ADDRESS) for each in causes):
        return ModelError("connection", description, retryable=False)
    if any(isinstance(each, aiohttp.ClientConnectorError) for each in causes):
        return ModelError("connection", description, retryable=True)
    if any(isinstance(each, aiohttp.ConnectionTimeoutError) for each in causes):
        return ModelError("timeout", description, retryable=True)
    if any(isinstance(each, (TimeoutError, httpx2.TimeoutException)) and not _refusal(each) for each in causes):
        return ModelError("timeout", description, retryable=True, billable=True)
    if answering:
        return ModelError("stream_cut", description, retryable=True, billable=True)
    return ModelError("connection", description, retryable=True, billable=True)


def _description(causes: list[BaseException]) -> str:
    """Say what each cause adds to the ones above it: a library below often repeats their words."""
    told = list[str]()
    for cause in causes:
        words = str(cause)
        if isinstance(cause, OSError) and cause.strerror:
            words = cause.strerror
        if not words or not any(words in above for above in told):
            told.append(f"{type(cause).__name__}: {words}".rstrip(": "))
    return "; ".join(dict.fromkeys(told))


def _causes(error: BaseException | None):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _refusal(error: BaseException) -> bool:
    # One SDK's transport calls every lost connection a timeout; the cause below it tells the truth.
    return isinstance(error.__cause__, aiohttp.ClientConnectionError) and not isinstance(error.__cause__, TimeoutError)
