"""Secrets of tenants: named in configurations, encrypted in a table, taken out of all that servers return."""
