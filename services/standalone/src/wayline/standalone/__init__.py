"""The wayline command: everything on one machine, no Docker."""
