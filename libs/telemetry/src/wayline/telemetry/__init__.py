"""Names, spans and the OTLP-over-NATS exporter."""
