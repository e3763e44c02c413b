"""Requests to MCP servers over HTTP: whether they have left, and their answers within limits."""
