"""Adapters of routes: models and their providers, files, caches of sessions, averages of agents."""
