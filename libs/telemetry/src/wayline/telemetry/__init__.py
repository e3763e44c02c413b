"""Names, spans, metrics, and the exporter that sends spans over the bus."""

from wayline.telemetry.export import BusExporter
from wayline.telemetry.recording import Span
from wayline.telemetry.spans import Home, Telemetry, carried, remote

__all__ = ["BusExporter", "Home", "Span", "Telemetry", "carried", "remote"]
