"""Sends webhooks: what happens to jobs, budgets and tools, to addresses of their tenants."""
