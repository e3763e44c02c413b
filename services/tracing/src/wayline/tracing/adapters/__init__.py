"""Tracing's outside systems: Postgres and the collector."""
