"""The embedded servers: their configuration, and keeping them running."""
