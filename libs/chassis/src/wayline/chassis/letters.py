"""Dead letters: what cannot be handled, as it is kept with its reason."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wayline.chassis.delivery import Delivery
from wayline.contracts import headers as h
from wayline.contracts.base import tenant_of

REASON_MAX = 1_000
BODY_MAX_BYTES = 64 * 1024
SENT_HEADERS_MAX_BYTES = 48 * 1024
"""Of the sender's own headers; a stream takes 64 KiB with ours."""

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""A header's name as the client library sends it; it hears others too."""


def letter(delivery: Delivery, *, code: str, reason: str) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a dead letter.

    A tenant has room for so many letters, so none is large: of a longer body the end is left out, and the reason says
    so. Nothing could be submitted again from here anyway.
    """
    kept, missing = _kept(delivery.headers)
    said = {
        **kept,
        # The sender's own word would let anybody plant letters in another tenant's list.
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
        said[h.DEAD_REASON] += f" (of the body's {len(body)} bytes the last are missing)"
        body = body[:BODY_MAX_BYTES]
    return body, said


def _kept(headers: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The sender's headers that go with its letter, and what to say of the others."""
    kept = {name: said for name, said in headers.items() if not name.startswith("Nats-") and _NAME.fullmatch(name)}
    if _size(kept) > SENT_HEADERS_MAX_BYTES:
        return {}, f" (its headers of {_size(kept)} bytes are missing)"
    return kept, ""


def _size(headers: Mapping[str, str]) -> int:
    """About what headers take in a message, and never less: their first line, and four characters with each."""
    return 16 + sum(len(name) + len(said.encode()) + 4 for name, said in headers.items())
