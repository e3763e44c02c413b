"""Wayline's pages of Grafana: what each asks, one module a page."""
