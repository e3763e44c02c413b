"""Dead letters: messages that cannot be handled, kept with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wayline.chassis.connection.delivery import Delivery
from wayline.contracts import headers as h
from wayline.contracts.base import tenant_of

REASON_MAX = 1_000
BODY_MAX_BYTES = 64 * 1024
SENT_HEADERS_MAX_BYTES = 48 * 1024
"""The most of the sender's own headers; with ours, a message may have 64 KiB of headers."""

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""A header's name as the client library sends it; it receives others too."""


def dead_letter(delivery: Delivery, *, code: str, reason: str) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a dead letter.

    A tenant's dead letters are bounded in number, so each is bounded in size: a longer body loses its end, and the
    reason says so. Nothing is submitted again from here.
    """
    kept, missing = _kept(delivery.headers)
    headers = {
        **kept,
        # Not the sender's own header: it could put letters into another tenant's list.
        h.TENANT: tenant_of(delivery.subject),
        h.DEAD_CODE: code,
        h.DEAD_REASON: " ".join(reason.split())[:REASON_MAX] + missing,
        h.DEAD_SUBJECT: delivery.subject,
        h.DEAD_STREAM: delivery.stream,
        h.DEAD_CONSUMER: delivery.consumer,
        h.DEAD_SEQUENCE: str(delivery.sequence),
        h.DEAD_DELIVERIES: str(delivery.deliveries),
        h.MSG_ID: f"dead-{delivery.stream}-{delivery.sequence}-{code}",
    }
    body = delivery.body
    if len(body) > BODY_MAX_BYTES:
        headers[h.DEAD_REASON] += f" (only the first {BODY_MAX_BYTES} of the body's {len(body)} bytes are kept)"
        body = body[:BODY_MAX_BYTES]
    return body, headers


def _kept(headers: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the sender's headers that are kept with the letter, and a remark on those that are not."""
    kept = {name: value for name, value in headers.items() if not name.startswith("Nats-") and _NAME.fullmatch(name)}
    if _size(kept) > SENT_HEADERS_MAX_BYTES:
        return {}, f" (its headers of {_size(kept)} bytes are not kept)"
    return kept, ""


def _size(headers: Mapping[str, str]) -> int:
    """Return an upper bound of the bytes that headers take in a message: a first line, and four more for each."""
    return 16 + sum(len(name) + len(value.encode()) + 4 for name, value in headers.items())
