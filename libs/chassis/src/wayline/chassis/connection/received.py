"""What the headers of a received message say."""

from __future__ import annotations

from nats.aio.msg import Msg

from wayline.contracts import headers as h
from wayline.contracts.base import Message
from wayline.contracts.errors import InvalidMessage


def check_headers(kind: type[Message], message: Msg) -> None:
    """Check that the schema and the tenant in the headers, where present, match the subject. Raises InvalidMessage."""
    headers = message.headers or {}
    schema, expected = headers.get(h.SCHEMA), kind.schema_id()
    if schema is not None and schema != expected:
        raise InvalidMessage(schema=expected, reason=f"{h.SCHEMA} is {schema!r}, but this build reads {expected!r}")
    tenant, in_header = kind.address(message.subject).get("tenant"), headers.get(h.TENANT)
    if tenant is not None and in_header is not None and in_header != tenant:
        raise InvalidMessage(schema=expected, reason=f"{h.TENANT} is {in_header!r}, but the subject has {tenant!r}")


def has_claims(message: Msg) -> bool:
    """Return whether large fields of a received message are in the object store."""
    return bool(message.headers and h.CLAIMS in message.headers)


def refuses(reply: Msg) -> bool:
    """Return whether an answer is an error."""
    return bool(reply.headers and h.ERROR in reply.headers)
