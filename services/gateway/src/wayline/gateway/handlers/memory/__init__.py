"""Handlers of what is remembered: memories of users, insights, subjects."""
