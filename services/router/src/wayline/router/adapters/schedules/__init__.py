"""Adapters of schedules: schedules as they are saved, and the jobs that they begin."""
