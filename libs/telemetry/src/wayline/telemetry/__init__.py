"""Names, spans, metrics, and the exporter that sends spans over the bus."""

from wayline.telemetry.export import BusExporter
from wayline.telemetry.spans import Home, Telemetry, carried, remote

__all__ = ["BusExporter", "Home", "Telemetry", "carried", "remote"]
