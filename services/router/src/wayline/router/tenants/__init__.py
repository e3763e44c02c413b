"""Tenants: created, disabled, their settings, and what each may have of what all share."""
