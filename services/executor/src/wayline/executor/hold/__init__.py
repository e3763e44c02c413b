"""Holds a job: its ticket, its log, its signals."""
