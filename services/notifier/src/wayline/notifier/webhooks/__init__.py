"""Webhooks of tenants: their configuration, their secrets, what is asked about them."""
