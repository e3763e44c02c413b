"""Schedules: when they fire, what became of each moment, and schedules as a resource."""
