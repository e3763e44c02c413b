"""HTTP requests to addresses that a model or a tenant chose."""

from wayline.guarded_http.client import Answer, Check, GuardedClient, Limits
from wayline.guarded_http.errors import (
    BadStatus,
    Blocked,
    GuardedRequestError,
    InvalidUrl,
    NotConnected,
    TimedOut,
    TooLarge,
    TooManyRedirects,
    Undecodable,
    Unreachable,
    asked_wait_s,
)
from wayline.guarded_http.lookups import look_up_for, looked_up_for
from wayline.guarded_http.policy import PORTS, AddressPolicy

__all__ = [
    "PORTS",
    "AddressPolicy",
    "Answer",
    "BadStatus",
    "Blocked",
    "Check",
    "GuardedClient",
    "GuardedRequestError",
    "InvalidUrl",
    "Limits",
    "NotConnected",
    "TimedOut",
    "TooLarge",
    "TooManyRedirects",
    "Undecodable",
    "Unreachable",
    "asked_wait_s",
    "look_up_for",
    "looked_up_for",
]
