"""Adapters of jobs: turns of sessions, families, results, the order of tickets, decisions on approvals."""
