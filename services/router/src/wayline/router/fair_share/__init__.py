"""Shares the backlog of a lane between the tenants that wait in it, by their weights."""
