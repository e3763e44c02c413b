"""Why a guarded request brought no answer.

GuardedRequestError      its `code` is for programs, its text for the model or user that chose the URL
├── InvalidUrl               not a URL that is fetched here at all
├── Blocked                  the host, the address or the port is not to be reached from here
├── TooManyRedirects
├── Unreachable              no such name, no connection, a broken answer
│   └── NotConnected             nothing was sent
├── TimedOut
├── TooLarge
├── Undecodable              the answer is compressed in a way that is not read, or wrongly
└── BadStatus                an answer, with a status of 400 or more
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import ClassVar

SECONDS_DIGITS_MAX = 9
"""Of a `Retry-After`: 31 years. What is longer is a mistake."""


class GuardedRequestError(Exception):
    """A request that brought no answer that can be used."""

    code: ClassVar[str] = "unreachable"


class InvalidUrl(GuardedRequestError):
    """Not a URL that is fetched here."""

    code = "invalid_url"


class Blocked(GuardedRequestError):
    """The host, the address or the port is not to be reached from here."""

    code = "blocked"


class TooManyRedirects(GuardedRequestError):
    """One redirect after the other."""

    code = "too_many_redirects"


class Unreachable(GuardedRequestError):
    """No such name, no connection, or an answer that broke off."""

    code = "unreachable"


class NotConnected(Unreachable):
    """No connection was made, so that nothing was sent."""


class TimedOut(GuardedRequestError):
    """The whole of it took too long."""

    code = "timeout"

    def __init__(self, host: str, *, after_s: float) -> None:
        super().__init__(f"{host} did not answer in full within {after_s:g} s")


class TooLarge(GuardedRequestError):
    """The body is above the limit, as it is sent or once it is unpacked."""

    code = "too_large"

    def __init__(self, host: str, *, max_bytes: int) -> None:
        super().__init__(f"the answer of {host} is larger than {max_bytes} bytes")


class Undecodable(GuardedRequestError):
    """The body is compressed in a way that is not read here, or is damaged."""

    code = "undecodable"


class BadStatus(GuardedRequestError):
    """An answer with a status of 400 or more."""

    code = "bad_status"

    def __init__(self, host: str, status: int, *, headers: Mapping[str, str], content: bytes) -> None:
        super().__init__(f"{host} answered with status {status}")
        self.status = status
        self.headers = headers
        """By their names in small letters."""
        self.content = content

    @property
    def retry_after_s(self) -> float | None:
        """Return how long the server asks to be left alone."""
        return asked_wait_s(self.headers)


def asked_wait_s(headers: Mapping[str, str]) -> float | None:
    """Return how long an answer's `Retry-After` asks to be left alone: seconds, or a date by the server's clock."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal() and len(value) <= SECONDS_DIGITS_MAX:
        return float(value)
    until = _date(value)
    if until is None:
        return None
    return max(0.0, (until - (_date(headers.get("date", "")) or datetime.now(UTC))).total_seconds())


def _date(value: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(value)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
