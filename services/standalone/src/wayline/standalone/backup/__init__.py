"""Backups of a whole installation: what is in them, how they are taken under load, how they are restored."""
