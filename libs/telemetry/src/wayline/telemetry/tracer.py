"""Start a service's spans: with the SDK's sampler, ids, limits and processors, at a third of its own span's cost."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from time import time_ns
from typing import Any

from opentelemetry import trace
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk import trace as sdk
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode

from wayline.telemetry.tracer_provider import JobSampler

UNSET = Status(StatusCode.UNSET)
PLAIN = frozenset({str, int, float, bool})
"""Types of a value that the SDK takes as it is."""


class JobTracer:
    """Starts a `RecordedSpan` for what the SDK's default would take, and the SDK's own span for all else."""

    def __init__(self, provider: sdk.TracerProvider, scope: str) -> None:
        self._tracer = tracer = provider.get_tracer(scope)
        self._own: sdk.Tracer | None = None
        """The tracer by which our own spans are made."""
        # A disabled SDK gives another tracer, and a limit on the length of values is the SDK's to keep.
        if isinstance(tracer, sdk.Tracer) and isinstance(tracer.sampler, JobSampler):
            self._ids, self._takes_under = tracer.id_generator, tracer.sampler.takes_under
            unlimited = tracer._span_limits.max_span_attribute_length is None  # pyright: ignore[reportPrivateUsage]
            self._own = tracer if unlimited else None

    def start(
        self,
        name: str,
        kind: SpanKind,
        attributes: Mapping[str, Any] | None,
        *,
        parent: SpanContext | None,
        links: Sequence[SpanContext],
    ) -> Span:
        """Start a span under `parent`, or under the current one."""
        above = trace.get_current_span().get_span_context() if parent is None else parent
        if links or self._own is None or not self._takes_under(above):
            context = None if parent is None else trace.set_span_in_context(NonRecordingSpan(parent))
            return self._tracer.start_span(name, context, kind, attributes, [Link(link) for link in links])
        ids = above.trace_id, self._ids.generate_span_id()
        context = SpanContext(*ids, is_remote=False, trace_flags=above.trace_flags, trace_state=above.trace_state)
        return RecordedSpan(self._own, name, kind, attributes, context=context, parent=above)


class RecordedSpan(sdk.Span):
    """A span of the SDK that keeps its attributes in a plain dictionary until it ends.

    The SDK's own checks each value twice under a lock, makes two bounded lists for events and links that hardly any
    span has, and copies itself for the processors. This one is given to them as it is: it changes no more.
    """

    # Guards what is rare: events, links, a status and another name.
    _lock = threading.Lock()

    def __init__(
        self,
        tracer: sdk.Tracer,
        name: str,
        kind: SpanKind,
        attributes: Mapping[str, Any] | None,
        *,
        context: SpanContext,
        parent: SpanContext,
    ) -> None:
        # Not the SDK's own: it would make what this span does without.
        self._name, self._kind, self._context, self._parent = name, kind, context, parent
        self._resource = tracer.resource
        self._instrumentation_scope = tracer._instrumentation_scope
        self._limits = tracer._span_limits
        self._span_processor = tracer.span_processor
        self._attributes = dict(attributes) if attributes else {}
        self._events = self._links = ()
        self._status = UNSET
        self._end_time = None
        self._start_time = time_ns()
        self._span_processor.on_start(self)

    def set_attribute(self, key: str, value: Any) -> None:
        if self._end_time is None:
            self._attributes[key] = value

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        if self._end_time is None:
            self._attributes.update(attributes)

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        self._events = self._events or self._new_events()
        super().add_event(name, attributes, timestamp)

    def add_link(self, context: SpanContext, attributes: Any = None) -> None:
        self._links = self._links or self._new_links(())
        super().add_link(context, attributes)

    def end(self, end_time: int | None = None) -> None:
        if self._end_time is not None:
            return
        self._end_time = time_ns() if end_time is None else end_time
        given, most = self._attributes, self._limits.max_span_attributes
        if (most is not None and len(given) > most) or not PLAIN.issuperset(map(type, given.values())):
            self._attributes = BoundedAttributes(most, given)
        self._span_processor.on_end(self)
