"""A service's tracer provider: the OpenTelemetry SDK's own, as the `OTEL_…` variables say, with its spans in scope."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanContext, SpanKind
from opentelemetry.trace.span import TraceState
from opentelemetry.util.types import Attributes

from wayline.contracts.errors import WrongSetting
from wayline.telemetry import names

ROOT = Context()
"""A context without a span: what is sampled under it is the first of its trace."""


def make_provider(service: str, processors: Sequence[SpanProcessor] = ()) -> TracerProvider:
    """Make a provider for one service, as the variables say. Raises WrongSetting."""
    try:
        limits = SpanLimits()
    except ValueError as error:
        raise WrongSetting("OTEL_…_LIMIT", str(error)) from None
    # No hook at exit: a service sends its last spans while it still has its bus.
    provider = TracerProvider(resource=resource_of(service), span_limits=limits, shutdown_on_exit=False)
    provider.sampler = JobSampler(provider.sampler)
    for processor in processors:
        provider.add_span_processor(processor)
    return provider


def resource_of(service: str) -> Resource:
    """Return what the variables say of this process; its service is known by a name of ours, whatever they say."""
    called = OTELResourceDetector().detect().attributes.get(SERVICE_NAME) or service
    return Resource.create({SERVICE_NAME: called, names.SERVICE: service})


class JobSampler(Sampler):
    """Asks the configured sampler about a job's trace as if its first span began there.

    The span above it was made from the log, which knows no sampling: were it a parent like any other, every sampler
    that follows the parent would take every job.
    """

    def __init__(self, configured: Sampler) -> None:
        self._configured = configured
        self._takes_all = configured is DEFAULT_ON

    def should_sample(  # noqa: PLR0917 - the SDK's own signature
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        parent = trace.get_current_span(parent_context).get_span_context()
        if not is_made_from_log(parent):
            return self._configured.should_sample(parent_context, trace_id, name, kind, attributes, links)
        result = self._configured.should_sample(ROOT, trace_id, name, kind, attributes, links)
        result.trace_state = parent.trace_state
        return result

    def takes_under(self, parent: SpanContext) -> bool:
        """Say, as the SDK's default would, that a span under such a parent is taken."""
        return self._takes_all and parent.is_valid and parent.trace_flags.sampled

    def get_description(self) -> str:
        return f"JobSampler{{{self._configured.get_description()}}}"


def is_made_from_log(context: SpanContext) -> bool:
    """Say whether a span is one that tracing makes from a job's log: the nearest such span is then the span itself."""
    return context.is_remote and context.trace_state.get(names.ANCHOR) == f"{context.span_id:016x}"
