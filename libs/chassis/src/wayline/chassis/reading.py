"""What the headers of a received message must agree with."""

from __future__ import annotations

from nats.aio.msg import Msg

from wayline.contracts import headers as h
from wayline.contracts.base import Message
from wayline.contracts.errors import InvalidMessage


def check_headers(kind: type[Message], message: Msg) -> None:
    """Headers are optional for a client and must agree when present. Raises InvalidMessage."""
    headers = message.headers or {}
    schema = headers.get(h.SCHEMA)
    if schema is not None and schema != kind.schema_id():
        raise InvalidMessage(
            schema=kind.schema_id(), reason=f"{h.SCHEMA} says {schema!r}; this build reads {kind.schema_id()!r}"
        )
    tenant = kind.address(message.subject).get("tenant")
    said = headers.get(h.TENANT)
    if tenant is not None and said is not None and said != tenant:
        raise InvalidMessage(schema=kind.schema_id(), reason=f"{h.TENANT} is {said!r} but the subject says {tenant!r}")
