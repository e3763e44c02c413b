"""Handlers that begin jobs again: forks and exports, redrives, dead letters."""
