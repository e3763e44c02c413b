"""Spans of the things a service does: one per handled message, one per call to the outside."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode, TraceState

from wayline.contracts import ids
from wayline.contracts.headers import TRACEPARENT, TRACESTATE
from wayline.telemetry import names
from wayline.telemetry.recording import SAMPLED, Collector, Span, Tracer, TracerProvider, headers_of


@dataclass(frozen=True, slots=True)
class Home:
    """Where a job's spans hang: its one trace, and the log-made span that they stand under."""

    trace_id: str
    span_id: str

    @classmethod
    def of(cls, tenant: str, job_id: str, span_id: str | None = None) -> Home:
        return cls(ids.trace_id(tenant, job_id), span_id or ids.job_span(tenant, job_id))

    def context(self) -> SpanContext:
        return SpanContext(
            int(self.trace_id, 16), int(self.span_id, 16), True, SAMPLED, TraceState([(names.ANCHOR, self.span_id)])
        )

    def headers(self) -> dict[str, str]:
        """The headers of a message sent from this span without opening a span of its own."""
        return {
            TRACEPARENT: f"00-{self.trace_id}-{self.span_id}-01",
            TRACESTATE: f"{names.ANCHOR}={self.span_id}",
        }


def remote(headers: Mapping[str, str] | None) -> SpanContext | None:
    """The span that a message or a request came from, or None when its `traceparent` is missing or malformed."""
    parts = (headers or {}).get(TRACEPARENT, "").split("-")
    if len(parts) != 4 or (len(parts[1]), len(parts[2])) != (32, 16):
        return None
    try:
        trace_id, span_id = int(parts[1], 16), int(parts[2], 16)
    except ValueError:
        return None
    state = TraceState.from_header([(headers or {}).get(TRACESTATE, "")])
    context = SpanContext(trace_id, span_id, True, SAMPLED, state)
    return context if context.is_valid else None


class _Under(AbstractContextManager[Span]):
    """A block that runs under a span.

    By hand: the API's own `start_as_current_span` is four generators deep, and one lives for as long as its job.
    """

    __slots__ = ("_span", "_token")

    def __init__(self, span: Span) -> None:
        self._span = span

    def __enter__(self) -> Span:
        self._token = context.attach(trace.set_span_in_context(self._span))
        return self._span

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            self._span.set_attribute(names.ERROR_TYPE, type(error).__name__)
            self._span.set_status(StatusCode.ERROR)
        context.detach(self._token)
        self._span.end()


class Telemetry:
    """A service's tracer: spans go to the collectors it was made with, never to a global."""

    def __init__(self, service: str, *collectors: Collector) -> None:
        self.service = service
        self._collectors = list(collectors)
        self.add_collector = self._collectors.append
        self._tracer = Tracer(service, self._collectors)
        self.provider = TracerProvider(self._tracer)

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
        above = parent or trace.get_current_span().get_span_context()
        return _Under(
            self._tracer.begin(name, above, kind=kind, attributes=attributes, links=[Link(link) for link in links])
        )

    def handling(
        self,
        template: str,
        headers: Mapping[str, str] | None,
        *,
        home: Home | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Span]:
        """The one CONSUMER span of a message.

        `home` names the job's own trace: a `traceparent` of any other trace is then a link, never the parent, so that
        nobody can write into a job's trace from outside. Without `home` the sender's span is the parent.
        """
        sender = remote(headers)
        ours = home is None or (sender is not None and format(sender.trace_id, "032x") == home.trace_id)
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
            parent=sender if ours or home is None else home.context(),
            links=() if ours or sender is None else (sender,),
        )

    def calling(
        self, name: str, attributes: Mapping[str, Any] | None = None, *, kind: SpanKind = SpanKind.CLIENT
    ) -> AbstractContextManager[Span]:
        """A call to the outside: a provider, an MCP server, a database."""
        return self.span(name, kind, attributes)


def carried() -> Mapping[str, str]:
    """The headers that carry the current span to whoever hears the next message; empty outside any span."""
    span = trace.get_current_span()
    return span.headers if isinstance(span, Span) else headers_of(span.get_span_context())
