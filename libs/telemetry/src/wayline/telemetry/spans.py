"""Spans of the things a service does: one per handled message, one per call to the outside."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any

from opentelemetry import context, trace
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import Span, SpanContext, SpanKind, StatusCode, TraceFlags, TraceState

from wayline.contracts import ids
from wayline.contracts.headers import TRACEPARENT, TRACESTATE
from wayline.telemetry import names
from wayline.telemetry.tracer import JobTracer
from wayline.telemetry.tracer_provider import make_provider

SAMPLED = TraceFlags(TraceFlags.SAMPLED)
SCOPE = "wayline"
STATES_KEPT = 1_024
STATE_MAX = 64
"""Characters of a `tracestate` that is kept at hand; ours are shorter, a caller's may be anything."""


@dataclass(frozen=True, slots=True)
class JobTrace:
    """The place of a job's spans: its one trace, and the log-made span that they stand under."""

    trace_id: str
    span_id: str

    @classmethod
    def of(cls, tenant: str, job_id: str, span_id: str | None = None) -> JobTrace:
        return cls(ids.trace_id(tenant, job_id), span_id or ids.job_span(tenant, job_id))

    def context(self) -> SpanContext:
        return SpanContext(
            int(self.trace_id, 16), int(self.span_id, 16), True, SAMPLED, TraceState([(names.ANCHOR, self.span_id)])
        )

    def headers(self) -> dict[str, str]:
        """Return the headers of a message sent from this span without opening a span of its own."""
        return {
            TRACEPARENT: f"00-{self.trace_id}-{self.span_id}-01",
            TRACESTATE: f"{names.ANCHOR}={self.span_id}",
        }


def remote(headers: Mapping[str, str] | None) -> SpanContext | None:
    """Return the span that a message or a request came from; None when its `traceparent` is missing or malformed."""
    parts = (headers or {}).get(TRACEPARENT, "").split("-")
    if len(parts) != 4 or (len(parts[1]), len(parts[2]), len(parts[3])) != (32, 16, 2):
        return None
    try:
        trace_id, span_id, flags = int(parts[1], 16), int(parts[2], 16), int(parts[3], 16)
    except ValueError:
        return None
    context = SpanContext(trace_id, span_id, True, TraceFlags(flags), _trace_state((headers or {}).get(TRACESTATE, "")))
    return context if context.is_valid else None


def _trace_state(header: str) -> TraceState:
    return _own_trace_state(header) if len(header) <= STATE_MAX else TraceState.from_header([header])


# A job's messages carry the same few.
@lru_cache(STATES_KEPT)
def _own_trace_state(header: str) -> TraceState:
    return TraceState.from_header([header])


def headers_of(context: SpanContext) -> dict[str, str]:
    """Return the trace headers for a span's context; empty for none."""
    if not context.is_valid:
        return {}
    headers = {TRACEPARENT: f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"}
    if context.trace_state:
        headers[TRACESTATE] = context.trace_state.to_header()
    return headers


class _Under(AbstractContextManager[Span]):
    """A block that runs under a span.

    By hand: the API's own `start_as_current_span` is four generators deep, and one lives for as long as its job.
    """

    __slots__ = ("_block", "_headers", "_span", "_token")

    def __init__(self, span: Span) -> None:
        self._span = span
        self._headers: Mapping[str, str] | None = None

    def __enter__(self) -> Span:
        self._token = context.attach(trace.set_span_in_context(self._span))
        self._block = _BLOCK.get()
        _BLOCK.set(self)
        return self._span

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            self._span.set_attribute(names.ERROR_TYPE, type(error).__name__)
            self._span.set_status(StatusCode.ERROR)
        # Not by a token: it refuses to be given back in another task's context, and raises.
        _BLOCK.set(self._block)
        context.detach(self._token)
        self._span.end()

    def headers(self, span: Span) -> Mapping[str, str] | None:
        """Return what messages sent under this block's span carry; None where another span is the current one."""
        if span is not self._span:
            return None
        if self._headers is None:
            self._headers = headers_of(span.get_span_context())
        return self._headers


_BLOCK: ContextVar[_Under | None] = ContextVar("wayline_block", default=None)
"""The block that runs: its headers are written once, however many messages are sent from it."""


class Telemetry:
    """A service's tracer: the SDK's, with a provider of its own, because six services may share a process."""

    def __init__(self, service: str, *processors: SpanProcessor) -> None:
        self.service = service
        self.provider = make_provider(service, processors)
        self.add_processor = self.provider.add_span_processor
        self._tracer = JobTracer(self.provider, SCOPE)

    def span(
        self,
        name: str,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, Any] | None = None,
        *,
        parent: SpanContext | None = None,
        links: tuple[SpanContext, ...] = (),
    ) -> AbstractContextManager[Span]:
        """Run a block under a span; an exception marks it as an error and passes on."""
        return _Under(self._tracer.start(name, kind, attributes, parent=parent, links=links))

    def handling(
        self,
        template: str,
        headers: Mapping[str, str] | None,
        *,
        job_trace: JobTrace | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Span]:
        """Run a block under the one CONSUMER span of a message.

        With a `job_trace`, a `traceparent` of any other trace is a link, never the parent, so that nobody can write
        into a job's trace from outside. Without one the sender's span is the parent.
        """
        sender = remote(headers)
        ours = job_trace is None or (sender is not None and format(sender.trace_id, "032x") == job_trace.trace_id)
        return self.span(
            f"process {template}",
            SpanKind.CONSUMER,
            {
                names.MESSAGING_SYSTEM: "nats",
                names.MESSAGING_OPERATION: "process",
                names.MESSAGING_OPERATION_TYPE: "process",
                names.MESSAGING_TEMPLATE: template,
                **(attributes or {}),
            },
            parent=sender if ours or job_trace is None else job_trace.context(),
            links=() if ours or sender is None else (sender,),
        )

    def calling(
        self, name: str, attributes: Mapping[str, Any] | None = None, *, kind: SpanKind = SpanKind.CLIENT
    ) -> AbstractContextManager[Span]:
        """Run a block under the span of a call to the outside: a provider, an MCP server, a database."""
        return self.span(name, kind, attributes)


def carried() -> Mapping[str, str]:
    """Return the headers that carry the current span to the receiver of the next message; empty outside any span."""
    span, block = trace.get_current_span(), _BLOCK.get()
    headers = block.headers(span) if block is not None else None
    return headers_of(span.get_span_context()) if headers is None else headers
