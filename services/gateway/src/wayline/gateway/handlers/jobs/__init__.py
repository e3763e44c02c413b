"""Handlers of jobs: submit, list, signal, follow, approve, schedule, trace."""
