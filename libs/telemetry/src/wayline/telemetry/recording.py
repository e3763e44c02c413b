"""Spans as we record them: the OpenTelemetry API over a few plain fields, because every message opens at least one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    use_span,
)
from opentelemetry.util.types import Attributes, AttributeValue

from wayline.contracts.headers import TRACEPARENT, TRACESTATE

SAMPLED = TraceFlags(TraceFlags.SAMPLED)
UNSET = Status(StatusCode.UNSET)


class Span(trace.Span):
    """One span being recorded; when it ends it is handed to whoever collects spans.

    Its fields are named as in the OpenTelemetry SDK, so that what reads spans of the SDK reads ours.
    """

    def __init__(
        self,
        name: str,
        context: SpanContext,
        *,
        service: str,
        collect: Callable[[Span], None],
        parent: SpanContext | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, Any] | None = None,
        links: Sequence[Link] = (),
        start_time: int | None = None,
    ) -> None:
        self.name = name
        self.context = context
        self.parent = parent
        self.service = service
        self.kind = kind
        self.attributes = dict(attributes or ())
        self.links = tuple(links)
        self.events: tuple[tuple[str, int, Attributes], ...] = ()
        self.status = UNSET
        self.start_time = start_time or time.time_ns()
        self.end_time: int | None = None
        self._collect = collect

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """What a message sent from this span says of it."""
        return headers_of(self.context)

    def end(self, end_time: int | None = None) -> None:
        if self.end_time is None:
            self.end_time = end_time or time.time_ns()
            self._collect(self)

    def get_span_context(self) -> SpanContext:
        return self.context

    def is_recording(self) -> bool:
        return self.end_time is None

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        self.attributes[key] = value

    def set_attributes(self, attributes: Mapping[str, AttributeValue]) -> None:
        self.attributes.update(attributes)

    def add_link(self, context: SpanContext, attributes: Attributes = None) -> None:
        self.links = (*self.links, Link(context, attributes))

    def add_event(self, name: str, attributes: Attributes = None, timestamp: int | None = None) -> None:
        self.events = (*self.events, (name, timestamp or time.time_ns(), attributes))

    def update_name(self, name: str) -> None:
        self.name = name

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        self.status = status if isinstance(status, Status) else Status(status, description)

    def record_exception(
        self,
        exception: BaseException,
        attributes: Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        # The type only: messages and tracebacks hold content, and spans carry none.
        self.add_event("exception", {"exception.type": type(exception).__name__, **(attributes or {})}, timestamp)


def headers_of(context: SpanContext) -> dict[str, str]:
    """The trace headers for a span's context; empty for none."""
    if not context.is_valid:
        return {}
    headers = {TRACEPARENT: f"00-{context.trace_id:032x}-{context.span_id:016x}-01"}
    if context.trace_state:
        headers[TRACESTATE] = context.trace_state.to_header()
    return headers


class Collector(Protocol):
    """Whoever takes finished spans, as a span processor of the SDK does."""

    def on_end(self, span: Any) -> None: ...


class Tracer(trace.Tracer):
    """Makes the spans of one service."""

    def __init__(self, service: str, collectors: Sequence[Collector]) -> None:
        self._service = service
        self._collectors = collectors

    def start_span(  # noqa: PLR0917 - the API's own signature
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        start_time: int | None = None,
        record_exception: bool = True,
        set_status_on_exception: bool = True,
    ) -> Span:
        parent = trace.get_current_span(context).get_span_context()
        return self.begin(name, parent, kind=kind, attributes=attributes, links=links or (), start_time=start_time)

    def begin(
        self,
        name: str,
        parent: SpanContext,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, Any] | None = None,
        links: Sequence[Link] = (),
        start_time: int | None = None,
    ) -> Span:
        """Start a span under a parent that is at hand; an invalid one starts a trace."""
        known = parent.is_valid
        context = SpanContext(
            parent.trace_id if known else random.getrandbits(128),
            random.getrandbits(64),
            False,
            SAMPLED,
            parent.trace_state if known else None,
        )
        return Span(
            name,
            context,
            service=self._service,
            collect=self._collect,
            parent=parent if known else None,
            kind=kind,
            attributes=attributes,
            links=links,
            start_time=start_time,
        )

    @contextmanager
    def start_as_current_span(  # pyright: ignore[reportIncompatibleMethodOverride] # noqa: PLR0917 - as above
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        start_time: int | None = None,
        record_exception: bool = True,
        set_status_on_exception: bool = True,
        end_on_exit: bool = True,
    ) -> Iterator[trace.Span]:
        span = self.start_span(name, context, kind, attributes, links, start_time)
        with use_span(span, end_on_exit, record_exception, set_status_on_exception) as current:
            yield current

    def _collect(self, span: Span) -> None:
        for collector in self._collectors:
            collector.on_end(span)


class TracerProvider(trace.TracerProvider):
    """Hands a service's tracer to libraries that ask for a provider."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def get_tracer(
        self,
        instrumenting_module_name: str,
        instrumenting_library_version: str | None = None,
        schema_url: str | None = None,
        attributes: Attributes = None,
    ) -> Tracer:
        return self._tracer
