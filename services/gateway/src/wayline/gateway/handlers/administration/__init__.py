"""Handlers of tenants, API keys, settings, budgets, models and providers."""
