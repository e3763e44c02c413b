"""Spans that a tenant's own programs sent, on their way from the gateway to tracing."""

from __future__ import annotations

from pydantic import Field

from wayline.contracts.base import Frozen, Request

PART_BYTES_MAX = 256 * 1024
"""Of one request: its encoding is a third longer, and the bus carries no message of more than a megabyte."""
PART_SPANS_MAX = 256


class SpansReceived(Frozen):
    """What became of the spans of one request."""

    stored: int = Field(description="Those that were there already are counted, too.")
    rejected: int = 0
    reason: str = Field(default="", description="Why some were rejected.")


class ReceiveSpans(Request, subject="traces.receive.{tenant}", replies=SpansReceived):
    """Store spans of a tenant's own programs; the same ones again change nothing."""

    otlp: str = Field(description="An OTLP `ExportTraceServiceRequest` in protobuf, in base64.")
