"""Names, spans, metrics, and the exporter that sends spans over the bus."""

from opentelemetry.trace import Span

from wayline.telemetry.export import BusExporter
from wayline.telemetry.spans import JobTrace, Telemetry, carried, headers_of, remote

__all__ = ["BusExporter", "JobTrace", "Span", "Telemetry", "carried", "headers_of", "remote"]
