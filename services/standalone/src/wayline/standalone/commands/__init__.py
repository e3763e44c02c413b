"""The commands that talk to a running Wayline over HTTP."""
