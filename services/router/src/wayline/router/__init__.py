"""Accepts jobs, pins their agent, decides their route and wakes the parked."""
